# SPDX-License-Identifier: Apache-2.0
"""A function compiled by XLA."""
import jax
import jax.numpy as jnp

assert jax.devices()[0].platform == "gpu", "JAX has no GPU"
step = jax.jit(lambda x: jnp.tanh(x @ x.T).sum())
x = jnp.ones((256, 256))
for _ in range(20):
    step(x).block_until_ready()
