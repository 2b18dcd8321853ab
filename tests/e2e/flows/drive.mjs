// drive.mjs FOLDER [WORKER…]: starts the workers and the edge before them, drives every flow at every worker or at those
// named, and prints the table. FOLDER takes the state and the logs. Exits with 1 if a flow failed.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { smoke } from './clients.mjs';
import { flows, listen } from './flows.mjs';
import { Process, endAll, freePort } from './process.mjs';
import { Wire } from './wire.mjs';
import { workers as all } from './workers.mjs';

const FLOW_MS = 45_000;
const [folder, ...named] = process.argv.slice(2);
const workers = all.filter(({ name }) => named.length === 0 || named.includes(name));
const run = promisify(execFile);
const rows = new Map(workers.map(({ name }) => [name, new Map()]));
const faults = [];

async function main() {
  const fleet = await Promise.all(workers.map(async (w) => {
    const port = await freePort();
    const worker = new Process(w.name, w.argv(port), { log: folder, env: w.env?.(port) });
    const start = () => { worker.start(); return worker.listening(port); };
    await start();
    return {
      w, port, process: worker, start, direct: new Wire(`http://127.0.0.1:${port}${w.path ?? '/'}`),
      restart: async () => { await worker.kill(); await start(); },
    };
  }));
  const edge = await startEdge(fleet);
  await Promise.all(fleet.map(async (lane) => {
    lane.wire = new Wire(edge.url, await mint(lane.w.name));
    for (const [name, has, check] of flows) {
      if (has(lane.w)) await step(lane.w, name, () => check(lane));
      else rows.get(lane.w.name).set(name, '-');
    }
  }));
  const listening = fleet.filter(({ w }) => w.listens);
  await Promise.all(listening.map((lane) => step(lane.w, 'F4', async () => { lane.listening = await listen(lane); })));
  await smoke(fleet, step);
  await Promise.all(listening.map((lane) => lane.listening && step(lane.w, 'F4', () => lane.listening.heard())));
  const stopped = edge.process.kill('SIGTERM');
  await Promise.all(listening.map((lane) => lane.listening && step(lane.w, 'F4', () => lane.listening.ended())));
  const left = await stopped;
  if (left !== 0) faults.push(`the service left ${left} when it was told to stop`);
}

async function startEdge(fleet) {
  const manifest = fleet.map(({ w, port }) => {
    writeFileSync(`${folder}/${w.name}.key`, randomBytes(32).toString('hex'), { mode: 0o600 });
    return { tenant: w.name, address: `127.0.0.1:${port}`, token_file: `${w.name}.key`, path: w.path, ...w.manifest };
  });
  writeFileSync(`${folder}/workers.json`, JSON.stringify({ workers: manifest }));
  const edge = new Process('edge', [
    process.env.PLAYGROUND_BIN, 'mcp-http', '--bind', '127.0.0.1:0', '--state', `${folder}/state`, '--drain-secs', '10',
    '--faculties-workers', `${folder}/workers.json`,
  ], { log: folder });
  edge.start();
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(await edge.line(/^ready http/, { ms: 30_000 }));
  return { process: edge, url: `${url}/mcp` };
}

async function mint(tenant) {
  const argv = ['token', 'mint', tenant, '--catalogue', 'native', '--state', `${folder}/state`];
  return (await run(process.env.PLAYGROUND_BIN, argv, { timeout: 30_000 })).stdout.trim();
}

/** One cell of the table; a step of the same name that failed before stays failed. */
async function step(w, name, check) {
  const row = rows.get(w.name);
  let timer;
  try {
    const late = new Promise((_, fail) => { timer = setTimeout(fail, FLOW_MS, new Error(`not within ${FLOW_MS / 1000} s`)); });
    await Promise.race([check(), late]);
    row.set(name, row.get(name) ?? 'ok');
  } catch (fault) {
    row.set(name, 'FAIL');
    faults.push(`${w.name} ${name}: ${fault.message}${fault.cause ? ` (${fault.cause.message})` : ''}`);
  } finally {
    clearTimeout(timer);
  }
}

function table() {
  const names = [...flows.map(([name]) => name)];
  names.splice(names.indexOf('F5'), 0, 'F4');
  for (const row of rows.values()) for (const name of row.keys()) if (!names.includes(name)) names.push(name);
  const heads = [...rows.keys()];
  const width = Math.max(...names.map((name) => name.length)) + 2;
  console.log(`${''.padEnd(width)}${heads.map((head) => head.padEnd(12)).join('')}`);
  for (const name of names) {
    console.log(`${name.padEnd(width)}${heads.map((head) => (rows.get(head).get(name) ?? '-').padEnd(12)).join('')}`.trimEnd());
  }
  const cells = [...rows.values()].flatMap((row) => [...row.values()]);
  const count = (cell) => cells.filter((found) => found === cell).length;
  console.log(`\n${faults.map((fault) => `${fault}\n`).join('')}${count('ok')} ok, ${count('FAIL')} failed`);
}

let code = 1;
try {
  await main();
  code = faults.length ? 1 : 0;
} catch (fault) {
  console.error(`flows: ${fault.stack}`);
} finally {
  await endAll();
}
table();
process.exit(code);
