// authorization.mjs FOLDER SUITE: the suite's scenarios for authorization servers, at the edge over HTTPS, by each revision.
//
// The suite prints an address and waits for a person, who is ../e2e/oauth/person.mjs. README.md has a row for each check,
// under "## Authorization", which says how it ends; any other ending is a fault.
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';

import { startEdge } from '../e2e/oauth/edge.mjs';
import { allow } from '../e2e/oauth/person.mjs';
import { Process, endAll, freePort } from '../e2e/flows/process.mjs';

const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
// The first revision in which a client says for what a token is to be.
const WITH_RESOURCE = '2025-06-18';

const [folder, suite] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

/** What each check of a revision came to. */
async function play(edge, revision) {
  const port = await freePort();
  const registered = await fetch(`${edge.origin}/oauth/register`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Conformance', redirect_uris: [`http://127.0.0.1:${port}/callback`] }),
  });
  const { client_id: client } = await registered.json();
  const results = `${folder}/${revision}`;
  const resource = revision >= WITH_RESOURCE ? ['--resource', edge.url] : [];
  const run = new Process(`suite-${revision}`, [
    process.execPath, suite, 'authorization', '--url', edge.origin, '--client-id', client, '-p', String(port),
    '--spec-version', revision, ...resource, '-o', results,
  ], { log: folder });
  run.start();
  const address = await run.line(/^https:\/\/.*response_type=code/);
  await fetch(await allow(address, await edge.invite()));
  await run.exited;
  const files = readdirSync(results, { recursive: true }).filter((name) => name.endsWith('checks.json'));
  return files.flatMap((name) => JSON.parse(readFileSync(`${results}/${name}`, 'utf8')));
}

/** How README says that each check ends, by revision. */
function told() {
  const [, part] = readFileSync(new URL('README.md', import.meta.url), 'utf8').split('\n## Authorization\n');
  const [table] = part.split('\n| check |')[1].split('\n\n');
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  return new Map(rows.map((row) => {
    const [name, ...endings] = row.split('|').slice(1).map((cell) => cell.trim());
    return [name.replaceAll('`', ''), endings];
  }));
}

const faults = [];
try {
  const edge = await startEdge(folder);
  await edge.account();
  const wanted = told();
  for (const [place, revision] of REVISIONS.entries()) {
    const ended = new Map((await play(edge, revision)).map((check) => [check.id, check]));
    for (const name of new Set([...wanted.keys(), ...ended.keys()])) {
      const check = ended.get(name);
      const ending = { SUCCESS: 'pass', WARNING: 'warning' }[check?.status] ?? check?.status.toLowerCase() ?? 'not there';
      const expected = wanted.get(name)?.[place] ?? 'no row';
      if (ending !== expected) faults.push(`${revision} ${name}: ${ending}, and README says ${expected}: ${check?.errorMessage ?? ''}`);
    }
    console.log(`authorization ${revision}: ${[...ended.values()].map(({ id, status }) => `${id} ${status}`).join(', ')}`);
  }
  await edge.end();
} catch (fault) {
  faults.push(fault.stack);
} finally {
  await endAll();
}
for (const fault of faults) console.log(`  ${fault}`);
process.exit(faults.length === 0 ? 0 : 1);
