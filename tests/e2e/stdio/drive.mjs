// drive.mjs FOLDER [SERVER…]: starts the stdio servers' workers and the edge before them, drives what README.md lists, and
// prints the table. FOLDER takes the state and the logs. Exits with 1 if something failed.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { smoke } from '../flows/clients.mjs';
import { mint, startEdge } from '../flows/edge.mjs';
import { Process, endAll, freePort } from '../flows/process.mjs';
import { Table } from '../flows/table.mjs';
import { Wire } from '../flows/wire.mjs';
import { checks } from './checks.mjs';
import { servers } from './servers.mjs';

const [folder, ...named] = process.argv.slice(2);
const chosen = servers(folder).filter(({ name }) => named.length === 0 || named.includes(name));
const table = new Table(chosen.map(({ name }) => name));
const run = promisify(execFile);

async function main() {
  const fleet = await Promise.all(chosen.map(async (w) => {
    await furnish(w);
    const port = await freePort();
    const key = `${folder}/${w.name}.key`;
    writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
    const worker = new Process(w.name, [
      process.env.PLAYGROUND_BIN, 'worker', 'stdio', '--listen', `127.0.0.1:${port}`, '--token-file', key,
      '--cwd', folder, ...(w.options ?? []), '--', ...w.argv,
    ], { log: folder });
    worker.start();
    await worker.line(/^ready http/);
    return { w, port, process: worker };
  }));
  const edge = await startEdge(folder, fleet);
  await Promise.all(fleet.map(async (lane) => {
    lane.wire = new Wire(edge.url, await mint(folder, lane.w.name));
    for (const [name, has, check] of checks) {
      if (has(lane.w)) await table.step(lane.w.name, name, () => check(lane));
      else table.skip(lane.w.name, name);
    }
  }));
  // The clients want both eras, or sessions alone.
  await smoke(fleet.filter(({ w }) => w.sessions), (w, name, check) => table.step(w.name, name, check));
  for (const { w, process } of fleet) {
    const left = await process.kill('SIGTERM');
    if (left !== 0) table.fault(`the worker ${w.name} left ${left} when it was told to stop`);
  }
  await edge.process.kill('SIGTERM');
}

/** What a server works on. */
async function furnish({ name, files, repository }) {
  if (!files) return;
  mkdirSync(`${folder}/${name}`);
  for (const [file, content] of Object.entries(files)) writeFileSync(`${folder}/${name}/${file}`, content);
  if (repository) await run('git', ['init', '-q', `${folder}/${name}`]);
}

let code = 1;
try {
  await main();
  code = table.faults.length ? 1 : 0;
} catch (fault) {
  console.error(`stdio: ${fault.stack}`);
} finally {
  await endAll();
}
table.print();
process.exit(code);
