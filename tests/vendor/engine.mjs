// SPDX-License-Identifier: Apache-2.0
// Replacement for the programs duckdb and clickhouse, using their npm packages: engine.mjs FOLDER duckdb|clickhouse.
// Reads SQL from standard input. Prints rows as JSON lines, and the duration of each query on standard error.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [, , folder, engine] = process.argv;
const require = createRequire(`${folder}/package.json`);
const sql = readFileSync(0, 'utf8');

async function* duckdb() {
  const { DuckDBInstance } = require('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const statements = await connection.extractStatements(sql);
  for (let i = 0; i < statements.count; i++) {
    const rows = (await (await statements.prepare(i)).runAndReadAll()).getRowObjectsJson();
    yield rows.map(row => JSON.stringify(row)).filter(row => !row.startsWith('{"Count":')); // result of CREATE TABLE
  }
}

async function* clickhouse() {
  const { Session } = require('chdb');
  const session = new Session();
  for (const statement of sql.split(/;[ \t]*$/m).filter(statement => statement.trim()))
    yield String(session.query(statement, 'JSONEachRow')).split('\n').filter(line => line);
  session.cleanup();
}

let before = performance.now(), query = 'load';
for await (const rows of engine === 'duckdb' ? duckdb() : clickhouse()) {
  if (!rows.length)
    continue;
  console.log(rows.join('\n'));
  const name = JSON.parse(rows[0]).query;
  const seconds = ((performance.now() - before) / 1000).toFixed(2);
  if (name === undefined || query === 'load')
    console.error(`${query} ${seconds} s`);
  query = name ?? query;
  before = performance.now();
}
