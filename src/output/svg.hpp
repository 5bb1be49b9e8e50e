// SPDX-License-Identifier: Apache-2.0
// Style sheet and script of SVG flame graphs. Each frame is an element <g class="f" data-x="" data-w="" data-d=""> that
// contains title, rect and text. x and w are the frame's start and width, as shares of the total width; d is its depth.
#pragma once

#include <string_view>

namespace gpusnoop {

inline constexpr std::string_view svg_style = R"(
svg{--back:#fff;--text:#111;--light:76%;--full:68%;--found:#ff5ad2;background:var(--back);font:11px ui-monospace,Menlo,Consolas,monospace}
@media(prefers-color-scheme:dark){svg{--back:#15171c;--text:#f4f4f4;--light:29%;--full:48%;--found:#a3157f}}
text{fill:var(--text)}
.f{cursor:pointer}
.f rect{fill:hsl(var(--h) var(--full) var(--light));stroke:var(--back);stroke-width:.6}
.f text{pointer-events:none}
.f:hover rect,.f:focus rect{stroke:var(--text);stroke-width:1}
.f:focus{outline:none}
.found rect{fill:var(--found)}
.head{font-size:14px}
.note{opacity:.8}
#reset{cursor:pointer;text-decoration:underline;visibility:hidden}
input{width:190px;box-sizing:border-box;font:11px ui-monospace,Menlo,Consolas,monospace;color:var(--text);background:var(--back);border:1px solid var(--text)}
)";

inline constexpr std::string_view svg_script = R"(
'use strict';
const svg = document.documentElement, width = 1200, letter = 6.7;
const frames = Array.from(document.querySelectorAll('.f'), g => ({
  g, rect: g.querySelector('rect'), text: g.querySelector('text'),
  name: g.querySelector('title').textContent.split('\n')[0],
  x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d}));
const whole = {x: 0, w: 1, d: 0}, byId = id => document.getElementById(id);
function fitted(name, pixels) {
  const room = Math.floor((pixels - 6) / letter), all = Array.from(name);
  return room < 3 ? '' : all.length <= room ? name : all.slice(0, room - 2).join('') + '..';
}
function zoom(to) {
  for (const f of frames) {
    const above = f.d < to.d && f.x <= to.x && f.x + f.w >= to.x + to.w * .999999;
    const begin = above ? 0 : (f.x - to.x) / to.w, share = above ? 1 : f.w / to.w;
    const shown = above || f === to || f.d >= to.d && begin > -1e-9 && begin + share < 1 + 1e-6;
    f.g.style.display = shown && share * width >= .1 ? '' : 'none';
    f.g.style.opacity = above ? .6 : '';
    f.rect.setAttribute('x', begin * width);
    f.rect.setAttribute('width', Math.max(share * width, .1));
    f.text.setAttribute('x', begin * width + 3);
    f.text.textContent = fitted(f.name, share * width);
  }
  byId('reset').style.visibility = to.w < 1 ? 'visible' : 'hidden';
}
function search(what) {
  const wanted = what.toLowerCase(), found = [];
  for (const f of frames) {
    const is = wanted !== '' && f.name.toLowerCase().includes(wanted);
    f.g.classList.toggle('found', is);
    if (is) found.push(f);
  }
  found.sort((a, b) => a.x - b.x || b.w - a.w);
  let sum = 0, end = -1;
  for (const f of found)
    if (f.x >= end - 1e-9) { sum += f.w; end = f.x + f.w; }
  byId('share').textContent = wanted === '' ? '' : (100 * sum).toFixed(2) + '% found';
}
for (const f of frames) {
  f.g.addEventListener('click', () => zoom(f));
  f.g.addEventListener('keydown', e => { if (e.key === 'Enter') zoom(f); });
}
byId('reset').addEventListener('click', () => zoom(whole));
byId('what').addEventListener('input', e => search(e.target.value));
svg.addEventListener('keydown', e => {
  if (e.key === 'Escape') { byId('what').value = ''; search(''); zoom(whole); }
  if (e.key === '/' && e.target.id !== 'what') { byId('what').focus(); e.preventDefault(); }
});
)";

} // namespace gpusnoop
