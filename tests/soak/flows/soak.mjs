// soak.mjs FOLDER SECONDS SEED: README.md says what must be so.
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { endAll } from '../../e2e/flows/process.mjs';
import { Wrong, acts } from './acts.mjs';
import { disturbed, fleet, strike } from './fleet.mjs';
import { gauges } from './gauges.mjs';

/** Clients of one tenant at once. */
const SEATS = 6;
/** Before the first look: everything has been used, and what is remembered of ended sessions has had its time. */
const WARM_UP = 0.3;
const STRIKE_EVERY_MS = 1500;
const MOST_DOWN_MS = 400;
const QUIET_MS = 3000;
/** What no absence of a worker explains: anything but a lost session, or a stream or call that ends in words. */
const senseless = (status) => status !== undefined && ![200, 404, 502, 503].includes(status);
const faults = [];
const tally = new Map(Object.keys(acts).map((name) => [name, { done: 0, away: 0 }]));
const [folder, seconds, seed] = process.argv.slice(2);

async function main() {
  const chance = random(Number(seed));
  const { edge, lanes } = await fleet(folder);
  const parts = { supervisor: edge.child.pid, edge: onlyChild(edge.child.pid) };
  console.log(`${seconds} s, seed ${seed}`);
  await work(lanes, chance, seconds * WARM_UP * 1000);
  const before = await quiet(parts);
  await work(lanes, chance, seconds * (1 - WARM_UP) * 1000);
  const after = await quiet(parts);
  if (onlyChild(edge.child.pid) !== parts.edge) faults.push('the edge was started anew');
  report(before, after, lanes);
  const left = await edge.kill('SIGTERM');
  if (left !== 0) faults.push(`the service left ${left} when it was told to stop`);
}

/** All seats act, and one worker after the other is killed, until the time is over. */
async function work(lanes, chance, ms) {
  const end = Date.now() + ms;
  const seats = lanes.flatMap((lane) => Array.from({ length: SEATS }, (_, i) => (
    sit({ lane, others: lanes.filter((other) => other !== lane), seat: { name: `${lane.tenant}${i}` } },
      random(chance(2 ** 31)), end)
  )));
  for (; Date.now() < end; await pause(STRIKE_EVERY_MS)) {
    await strike(lanes[chance(lanes.length)], chance(MOST_DOWN_MS));
  }
  await Promise.all(seats);
}

async function sit(place, chance, end) {
  const menu = Object.entries(acts).flatMap(([name, [often, has, act]]) => (
    has(place.lane.has) ? Array(often).fill([name, act]) : []
  ));
  for (let turn = 0; Date.now() < end; turn += 1) {
    const [name, play] = menu[chance(menu.length)];
    const word = `${place.seat.name}-${chance(2 ** 31)}`;
    const act = { ...place, chance, word, id: `${word}-id`, since: Date.now() };
    try {
      await play(act);
      tally.get(name).done += 1;
    } catch (fault) {
      if (!(fault instanceof Wrong) && !senseless(fault.status) && disturbed(place.lane, act.since)) {
        tally.get(name).away += 1;
        // What is refused at once would be asked for again at once.
        await pause(20);
      } else if (faults.length < 20) {
        faults.push(`${name} of ${word}: ${fault.message}${fault.cause ? ` (${fault.cause.message})` : ''}`);
      }
    }
  }
}

/** A look when nobody asks for anything and what was left has ended: the sessions, and then the descriptors. */
async function quiet(parts) {
  let last = '';
  for (let tries = 0; tries < 40; tries += 1) {
    await pause(QUIET_MS);
    const own = await gauges(`${folder}/state/admin.sock`);
    const seen = Object.fromEntries(Object.entries(parts).map(([name, pid]) => [name, look(pid)]));
    const descriptors = JSON.stringify(Object.values(seen).map((part) => part.descriptors));
    if ((own.playground_sessions ?? 0) === 0 && descriptors === last) return { ...seen, gauges: own };
    last = descriptors;
  }
  throw new Error('sessions that were left do not end, or the descriptors do not settle');
}

function look(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]);
  return { KiB: field('VmRSS'), descriptors: readdirSync(`/proc/${pid}/fd`).length, threads: field('Threads') };
}

/** How much more there may be afterwards. */
const MORE = {
  KiB: (before) => before * 0.1 + 1024,
  // The connections to workers that the edge keeps.
  descriptors: () => 32,
  // Those that write to the disk end when they have been idle for a while.
  threads: () => 8,
  // Connections that are kept.
  gauge: (before) => before * 0.1 + 32,
  // Each end is remembered for as long as its session would have lived, up to a bound that has its own tests.
  playground_tombstones: () => Infinity,
};

function report(before, after, lanes) {
  console.log(`\n${'act'.padEnd(28)}${'done'.padStart(9)}${'worker away'.padStart(13)}`);
  for (const [name, { done, away }] of tally) {
    console.log(`${name.padEnd(28)}${String(done).padStart(9)}${String(away).padStart(13)}`);
    if (done === 0) faults.push(`${name}: never done`);
  }
  const total = (key) => [...tally.values()].reduce((sum, counts) => sum + counts[key], 0);
  console.log(`${'all'.padEnd(28)}${String(total('done')).padStart(9)}${String(total('away')).padStart(13)}`);
  console.log(`\nworkers killed: ${lanes.map(({ tenant, outages }) => `${tenant} ${outages.length}`).join(', ')}`);
  console.log(`\n${''.padEnd(28)}${'before'.padStart(9)}${'after'.padStart(9)}`);
  for (const [part, seen] of Object.entries(after)) {
    for (const [what, is] of Object.entries(seen)) {
      // The process itself is looked at from outside.
      if (what.startsWith('process_')) continue;
      const was = before[part][what] ?? 0;
      const name = part === 'gauges' ? what : `${part} ${what}`;
      console.log(`${name.padEnd(28)} ${String(was).padStart(8)}${String(is).padStart(9)}`);
      if (is > was + (MORE[what] ?? MORE.gauge)(was)) faults.push(`${name}: ${is} where ${was} were`);
    }
  }
}

function onlyChild(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  if (children.length !== 1 || !children[0]) throw new Error(`the service has the children ${children}`);
  return Number(children[0]);
}

/** Numbers that a seed determines: mulberry32. */
function random(state) {
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

let code = 1;
try {
  await main();
  code = faults.length ? 1 : 0;
} catch (fault) {
  faults.push(fault.stack);
} finally {
  await endAll();
}
console.log(faults.length ? `\n${faults.join('\n')}` : '\nnothing was answered wrongly, and nothing grew');
process.exit(code);
