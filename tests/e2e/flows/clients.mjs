// The real clients: connect, list, call, at each worker. A dual-era client gets the stateless revision where the worker
// has it, and falls back on a session where it has not.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { LEGACY, MODERN } from './wire.mjs';
import { stateless } from './workers.mjs';

const HERE = new URL('.', import.meta.url).pathname;
const run = promisify(execFile);
const { connect: ts1 } = await import(`${process.env.E2E_CLIENTS}/ts1.mjs`);
const { connect: ts2 } = await import(`${process.env.E2E_CLIENTS}/ts2.mjs`);

/** Client, mode, and whether it can do without the stateless revision and without sessions. */
const script = [
  ['ts1', 'legacy', ts1],
  ['ts2', 'legacy', ts2],
  ['ts2', 'auto', ts2],
  ['ts2', { pin: MODERN }, ts2],
];
const python = [['mcp', 'legacy'], ['mcp', 'auto'], ['mcp', MODERN], ['fastmcp', 'legacy'], ['fastmcp', 'auto']];

export async function smoke(fleet, step) {
  await Promise.all([
    ...fleet.map(async ({ w, wire }) => {
      for (const [client, mode, connect] of script) {
        const label = mode.pin ? 'pin' : mode;
        await step(w, `${client} ${label}`, () => expect(w, label, () => converse(w, wire, connect, mode)));
      }
    }),
    ...['mcp', 'fastmcp'].map((kind) => pythons(fleet, step, kind)),
  ]);
}

async function converse(w, wire, connect, mode) {
  const client = await connect({ url: wire.url, tokens: { a: wire.token } }, mode)('a');
  try {
    const [name, args] = w.echo('smoke');
    const listed = (await client.list()).includes(name);
    const result = await client.call(name, args);
    return { version: client.version, listed, text: result.content[0].text };
  } finally {
    await client.close();
  }
}

/** The Python ones of a kind, one after the other in one process, since each start of Python takes a second. */
async function pythons(fleet, step, kind) {
  const asked = fleet.flatMap(({ w, wire }) => python.filter(([name]) => name === kind).map(([, mode]) => {
    const [tool, args] = w.echo('smoke');
    return { worker: w.name, mode, url: wire.url, token: wire.token, tool, args };
  }));
  const told = run(process.env.E2E_PYTHON, [`${HERE}clients.py`, kind], {
    env: { ...process.env, FLOWS_ASKED: JSON.stringify(asked) }, timeout: 60_000,
  }).then(({ stdout }) => stdout.trim().split('\n').map((line) => JSON.parse(line)));
  told.catch(() => {});
  for (const [i, { worker, mode }] of asked.entries()) {
    const { w } = fleet.find((lane) => lane.w.name === worker);
    const label = mode === MODERN ? 'pin' : mode;
    await step(w, `${kind} ${label}`, () => expect(w, label, async () => {
      const { error, ...seen } = (await told)[i];
      if (error) throw new Error(error);
      return seen;
    }));
  }
}

async function expect(w, mode, converse) {
  const modern = stateless(w);
  if (mode === 'pin' && !modern) {
    const refusal = await converse().then((seen) => { throw new Error(`it got ${JSON.stringify(seen)}`); }, (error) => error);
    if (/it got|timed out|fetch failed/.test(refusal.message)) throw refusal;
    return;
  }
  const seen = await converse();
  const wanted = { version: modern && mode !== 'legacy' ? MODERN : LEGACY, listed: true, text: w.echoed('smoke') };
  for (const [key, value] of Object.entries(wanted)) {
    if (!(value instanceof RegExp ? value.test(seen[key]) : seen[key] === value)) throw new Error(`${key} is ${JSON.stringify(seen[key])} where ${value} is wanted`);
  }
}
