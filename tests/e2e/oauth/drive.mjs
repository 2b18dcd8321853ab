// drive.mjs FOLDER [CLIENT…]: every client, or those named, logs in at an edge over HTTPS, and is let in by a configured token where nobody can.
import { strict as assert } from 'node:assert';

import { endAll } from '../flows/process.mjs';
import { Table } from '../flows/table.mjs';
import { startEdge } from './edge.mjs';
import { allow } from './person.mjs';

const ALL = [['ts1', 'legacy'], ['ts2', 'legacy'], ['ts2', 'auto'], ['mcp', 'legacy'], ['mcp', 'auto'], ['mcp-remote', '']];
const TOOLS = 8;
const DISCOVERY = ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration']
  .flatMap((name) => [`/.well-known/${name}`, `/.well-known/${name}/mcp`]);

const [folder, ...named] = process.argv.slice(2);
const CLIENTS = ALL.filter(([name]) => named.length === 0 || named.includes(name));
const edge = await startEdge(folder);
const token = await edge.account();
const heads = CLIENTS.map((words) => words.join(' ').trim());
const table = new Table(['edge', ...heads], ['metadata', 'login', 'use', 'refresh', 'again', 'header', 'refused']);

/** A person whose every look is counted. */
function person() {
  const counted = { times: 0 };
  const open = async (address) => {
    counted.times += 1;
    return allow(address, await edge.invite());
  };
  return Object.assign(open, { counted });
}

async function use(connection) {
  assert.equal((await connection.list()).length, TOOLS);
  const opened = await connection.call('open_session', {});
  assert.ok(!opened.isError, JSON.stringify(opened.content));
  const { session } = opened.structuredContent;
  const ran = await connection.call('exec', { session, command: 'echo in' });
  assert.match(ran.content[0].text, /^in$/m);
  await connection.call('close_session', { session });
}

async function client(name, mode, head) {
  const { connect } = await import(`${process.env.E2E_CLIENTS}/${name}.mjs`);
  const open = connect(mode);
  const keep = {};
  const asks = person();
  const full = { url: edge.url, keep, person: asks };
  const asked = () => asks.counted.times;
  const visit = async (how, check = use) => {
    const connection = await open(how);
    try {
      await check(connection);
    } finally {
      await connection.close();
    }
  };

  let connection;
  await table.step(head, 'login', async () => {
    connection = await open(full);
    assert.equal(asked(), 1);
    assert.ok(keep.tokens.refresh_token, 'there is no refresh token');
  });
  if (!connection) return;
  await table.step(head, 'use', () => use(connection));
  await table.step(head, 'refresh', async () => {
    const { access_token: before, refresh_token: spent } = keep.tokens;
    await connection.spoil();
    await use(connection);
    assert.equal(asked(), 1, 'somebody was asked again');
    assert.notEqual(keep.tokens.access_token, before);
    assert.notEqual(keep.tokens.refresh_token, spent);
    await connection.close();
  });
  await table.step(head, 'again', async () => {
    await visit(full);
    assert.equal(asked(), 1, 'somebody was asked again');
  });
  // Where nobody can log in, whoever has a token is let in, and whoever has a wrong one is told so and no more.
  await table.step(head, 'header', async () => {
    const seen = [];
    await visit({ url: edge.bearerUrl, token, seen });
    assert.deepEqual(seen.filter((address) => !address.startsWith(edge.bearerUrl)), []);
  });
  await table.step(head, 'refused', async () => {
    const seen = [];
    await assert.rejects(async () => visit({ url: edge.bearerUrl, token: `${token}x`, seen }));
    assert.deepEqual(seen.filter((address) => !address.startsWith(edge.bearerUrl)), []);
  });
}

/** What the edge says by itself, at either face. */
async function faces() {
  const knock = (url) => fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' });
  const challenge = async (url) => {
    const answer = await knock(url);
    assert.equal(answer.status, 401);
    return answer.headers.get('www-authenticate');
  };
  assert.match(await challenge(edge.url), /^Bearer .*resource_metadata="https:\/\/localhost:\d+\/.well-known\/oauth-protected-resource\/mcp"/);
  assert.match(await challenge(edge.bearerUrl), /^Bearer/);
  assert.doesNotMatch(await challenge(edge.bearerUrl), /resource_metadata|scope/);
  for (const path of DISCOVERY) {
    const [at, not] = await Promise.all([fetch(edge.origin + path), fetch(edge.bearerOrigin + path)]);
    assert.deepEqual([path, at.status, not.status], [path, 200, 404]);
    assert.equal(at.headers.get('access-control-allow-origin'), '*');
  }
  for (const path of ['/register', '/token', '/authorize', '/oauth/register', '/oauth/token', '/oauth/authorize', '/oauth/revoke']) {
    assert.deepEqual([path, (await knock(edge.bearerOrigin + path)).status], [path, 404]);
  }
}

try {
  await table.step('edge', 'metadata', faces);
  await Promise.all(CLIENTS.map((words, place) => client(...words, heads[place])));
  await edge.end();
} catch (fault) {
  table.fault(fault.message);
} finally {
  await endAll();
}
table.print();
process.exit(table.faults.length === 0 ? 0 : 1);
