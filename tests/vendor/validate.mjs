// SPDX-License-Identifier: Apache-2.0
// Validates manifests with the npm schemas of Kubernetes and the Prometheus operator: validate.mjs FOLDER FILE...
// Prints a JSON line per object; `wrong` is empty if it is valid.
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
