// drive.mjs FOLDER [WORKER…]: starts the workers and the edge before them, drives every flow at every worker or at those
// named, and prints the table. FOLDER takes the state and the logs. Exits with 1 if a flow failed.
import { over } from './bridge.mjs';
import { smoke } from './clients.mjs';
import { mint, startEdge } from './edge.mjs';
import { flows, listen } from './flows.mjs';
import { Process, endAll, freePort } from './process.mjs';
import { Table } from './table.mjs';
import { Wire } from './wire.mjs';
import { workers as all } from './workers.mjs';

const [folder, ...named] = process.argv.slice(2);
const workers = all.filter(({ name }) => named.length === 0 || named.includes(name));
// F4 lasts as long as the run, so it stands before what is driven first.
const names = flows.map(([name]) => name);
names.splice(names.indexOf('F5'), 0, 'F4');
const table = new Table(workers.map(({ name }) => name), names);
const step = (w, name, check) => table.step(w.name, name, check);

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
  const edge = await startEdge(folder, fleet);
  // Until then a worker that needs the bridge is not served over it.
  await Promise.all(fleet.map(({ port }) => edge.process.line(new RegExp(`a worker has answered .*127\\.0\\.0\\.1:${port}"`))));
  await Promise.all(fleet.map(async (lane) => {
    lane.wire = new Wire(edge.url, await mint(folder, lane.w.name));
    for (const [name, has, check] of flows) {
      if (has(lane.w)) await step(lane.w, name, () => check(lane));
      else table.skip(lane.w.name, name);
    }
  }));
  const listening = fleet.filter(({ w }) => w.listens);
  await Promise.all(listening.map((lane) => step(lane.w, 'F4', async () => { lane.listening = await listen(lane); })));
  await Promise.all([smoke(fleet, step), over(fleet.filter(({ w }) => w.bridge), step)]);
  await Promise.all(listening.map((lane) => lane.listening && step(lane.w, 'F4', () => lane.listening.heard())));
  const stopped = edge.process.kill('SIGTERM');
  await Promise.all(listening.map((lane) => lane.listening && step(lane.w, 'F4', () => lane.listening.ended())));
  const left = await stopped;
  if (left !== 0) table.fault(`the service left ${left} when it was told to stop`);
}

let code = 1;
try {
  await main();
  code = table.faults.length ? 1 : 0;
} catch (fault) {
  console.error(`flows: ${fault.stack}`);
} finally {
  await endAll();
}
table.print();
process.exit(code);
