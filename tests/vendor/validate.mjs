// SPDX-License-Identifier: Apache-2.0
// Manifests of Kubernetes against the schemas that npm has of it and of Prometheus' operator: validate.mjs FOLDER FILE...
// A line for each object, and whether it is valid.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [, , folder, ...files] = process.argv;
const require = createRequire(`${folder}/package.json`);
const { parseAllDocuments } = require('yaml');

async function model({ apiVersion, kind }) {
  const from = apiVersion.startsWith('monitoring.coreos.com/') ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
  return (await import(`${folder}/node_modules/${from}/${apiVersion}/${kind}.js`))[kind];
}

for (const file of files)
  for (const document of parseAllDocuments(readFileSync(file, 'utf8'), { merge: true })) {
    const object = document.toJS();
    let wrong = document.errors.map(String).join('; ');
    try {
      new (await model(object))(object).validate();
    } catch (error) {
      wrong ||= error.message;
    }
    console.log(JSON.stringify({ kind: object?.kind, wrong, object }));
  }
