// SPDX-License-Identifier: Apache-2.0
// Validates a profile with speedscope's own schema: speedscope.mjs FOLDER FILE. Prints errors on standard output.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [, , folder, file] = process.argv;
const Ajv = createRequire(`${folder}/package.json`)('ajv').default;
const schema = JSON.parse(readFileSync(`${folder}/node_modules/speedscope/dist/release/file-format-schema.json`, 'utf8'));
const check = new Ajv({ strict: false }).compile(schema);
if (!check(JSON.parse(readFileSync(file, 'utf8')))) console.log(JSON.stringify(check.errors));
