// drive.mjs FOLDER: a person with a browser logs clients in at an edge over HTTPS.
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

import { chromium } from 'playwright-core';

import { startEdge } from '../e2e/oauth/edge.mjs';
import { endAll } from '../e2e/flows/process.mjs';
import { Table } from '../e2e/flows/table.mjs';
import { Client } from './client.mjs';
import { look, watch } from './pages.mjs';

const { CERTS, CHROMIUM, SHOTS } = process.env;
const PATIENCE = 15_000;
const CERTIFICATE = { cert: readFileSync(`${CERTS}/dev.pem`), key: readFileSync(`${CERTS}/dev.key`) };
const BROWSER = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP claude.test 127.0.0.1',
];
// Chromium itself tells of a page's status; whoever tries a wrong code sees such a page.
const BAD_STATUS = /^error: Failed to load resource: the server responded with a status of 4\d\d/;

const edge = await startEdge(process.argv[2]);
await edge.account();
const table = new Table(['clicks', 'keyboard', 'document', 'pages'], [
  'discovery', 'registration', 'consent', 'wrong code', 'allowed', 'token', 'call', 'refresh', 'replay', 'revocation', 'cancel',
]);

const servers = [];

/** Where a client is answered: yields the address that each answer came to. */
async function callback(server, host, answer) {
  servers.push(server);
  const waiting = [];
  server.on('request', (request, response) => {
    const address = new URL(request.url, 'http://client');
    if (address.pathname !== '/callback') return response.writeHead(404).end();
    answer(response);
    waiting.shift()?.(address.searchParams);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `${host}:${server.address().port}/callback`,
    next: () => new Promise((resolve, reject) => {
      waiting.push(resolve);
      setTimeout(reject, PATIENCE, new Error('no answer came to the client')).unref();
    }),
  };
}

const html = (response) => response.writeHead(200, { 'Content-Type': 'text/html' })
  .end('<!doctype html><html lang="en"><title>Client</title><link rel="icon" href="data:,"><h1>Logged in</h1>');

// As claude.ai does for the program on the desktop: an answer over HTTPS goes on to the program's own scheme.
const web = await callback(
  https.createServer(CERTIFICATE), 'https://claude.test', (response) => response.writeHead(302, { Location: 'claude://done' }).end(),
);
const loopback = () => callback(http.createServer(), 'http://127.0.0.1', html);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: BROWSER });

async function open(options, wanted = []) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  return { page, context, faults: watch(page, wanted) };
}

/** From a code to tokens, a call, and what becomes of a refresh token that is used twice. */
async function tokens(head, client) {
  let first;
  await table.step(head, 'token', async () => {
    first = await client.redeem();
    assert.equal(first.status, 200, JSON.stringify(first));
    assert.ok(first.access_token && first.refresh_token);
  });
  await table.step(head, 'call', () => client.work(first.access_token));
  return first;
}

async function clicks() {
  let client;
  await table.step('clicks', 'discovery', async () => { client = await Client.discover(edge.url); });
  await table.step('clicks', 'registration', () => client.register('Claude', web.address));
  const { page, context, faults } = await open({}, [BAD_STATUS]);
  await table.step('clicks', 'consent', async () => {
    await page.goto(client.ask());
    await look(page, 'consent', SHOTS);
    assert.match(await page.textContent('main'), /“Claude”.*claude\.test/s);
  });
  await table.step('clicks', 'wrong code', async () => {
    await page.fill('#invite', 'not-an-invite');
    await page.click('button[value=allow]');
    await page.waitForSelector('[role=alert]');
    assert.match(await page.textContent('[role=alert]'), /not known/);
    await look(page, 'consent-wrong', SHOTS);
  });
  await table.step('clicks', 'allowed', async () => {
    const code = await edge.invite();
    const answer = web.next();
    const program = page.waitForRequest('claude://done');
    // As it comes out of a letter.
    await page.fill('#invite', ` ${code} `);
    await page.click('button[value=allow]');
    client.answered(await answer);
    await program;
  });
  const first = await tokens('clicks', client);
  await table.step('clicks', 'refresh', async () => {
    const second = await client.refresh(first.refresh_token);
    assert.equal(second.status, 200, JSON.stringify(second));
    assert.notEqual(second.refresh_token, first.refresh_token);
    await client.work(second.access_token);
    client.second = second;
  });
  await table.step('clicks', 'replay', async () => {
    // A stolen one that is spent, and the one after it as well: whoever uses it late is found out, and all of it ends.
    const third = await client.refresh(client.second.refresh_token);
    assert.equal(third.status, 200);
    const replayed = await client.refresh(first.refresh_token);
    assert.deepEqual([replayed.status, replayed.error], [400, 'invalid_grant']);
    assert.equal((await client.refresh(third.refresh_token)).error, 'invalid_grant');
    assert.equal(await client.status(third.access_token), 401);
  });
  assertNone('clicks', faults);
  await context.close();
}

/** No pointer and no script. */
async function keyboard() {
  const program = await loopback();
  let client;
  await table.step('keyboard', 'discovery', async () => { client = await Client.discover(edge.url); });
  // Without its port, as a program registers that takes another one each time.
  await table.step('keyboard', 'registration', async () => {
    await client.register('Editor', 'http://127.0.0.1/callback');
    client.redirect = program.address;
  });
  const { page, context, faults } = await open({ javaScriptEnabled: false }, [BAD_STATUS]);
  const focused = () => page.evaluate(() => `${document.activeElement.localName} ${document.activeElement.value ?? ''}`.trim());
  await table.step('keyboard', 'consent', async () => {
    await page.goto(client.ask());
    const order = [];
    for (let press = 0; press < 3; press += 1) {
      await page.keyboard.press('Tab');
      order.push(await focused());
      await page.screenshot({ path: `${SHOTS}/keyboard-${press}.png` });
    }
    assert.deepEqual(order, ['input', 'button allow', 'button deny']);
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
  });
  await table.step('keyboard', 'wrong code', async () => {
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[role=alert]');
    assert.equal(await focused(), 'input');
  });
  await table.step('keyboard', 'allowed', async () => {
    const answer = program.next();
    await page.keyboard.type(await edge.invite());
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    client.answered(await answer);
    await page.waitForSelector('text=Logged in');
  });
  const first = await tokens('keyboard', client);
  await table.step('keyboard', 'revocation', async () => {
    assert.equal(await client.status(first.access_token), 200);
    assert.equal(await client.revoke(first.refresh_token), 200);
    assert.equal(await client.status(first.access_token), 401);
    assert.equal((await client.refresh(first.refresh_token)).error, 'invalid_grant');
    // A token that is nothing is revoked as well (RFC 7009, 2.2).
    assert.equal(await client.revoke('nothing'), 200);
  });
  await table.step('keyboard', 'cancel', async () => {
    await page.goto(client.ask());
    const answer = program.next();
    for (let press = 0; press < 3; press += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    // Nobody lets this client in now, so a person decides whether to go on to it.
    await page.waitForSelector('a.button >> text=Back to');
    await page.screenshot({ path: `${SHOTS}/keyboard-cancel.png` });
    while (await page.evaluate(() => document.activeElement.localName) !== 'a') await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const said = client.answered(await answer);
    assert.equal(said.get('error'), 'access_denied');
  });
  assertNone('keyboard', faults);
  await context.close();
}

/** A client that is a document, of a program with a scheme of its own, without anything on the way. */
async function documented() {
  const said = {};
  const server = https.createServer(CERTIFICATE, (request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said[request.url]));
  });
  servers.push(server);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `https://localhost:${server.address().port}`;
  const metadata = { client_id: `${origin}/client.json`, client_name: 'Cursor', redirect_uris: ['cursor://login/callback'] };
  Object.assign(said, { '/client.json': metadata, '/other.json': metadata });

  let client;
  await table.step('document', 'discovery', async () => {
    client = await Client.discover(edge.url);
    assert.equal(client.server.client_id_metadata_document_supported, true);
    client.documented(metadata.client_id, metadata.redirect_uris[0]);
  });
  const { page, context, faults } = await open({}, [BAD_STATUS]);
  await table.step('document', 'consent', async () => {
    await page.goto(client.ask());
    await look(page, 'document', SHOTS);
    assert.match(await page.textContent('main'), /“Cursor”.*client\.json \(a document at this address\).*cursor:/s);
  });
  await table.step('document', 'allowed', async () => {
    const answer = page.waitForRequest(/^cursor:/);
    await page.fill('#invite', await edge.invite('--client', metadata.client_id));
    await page.click('button[value=allow]');
    client.answered(new URL((await answer).url()).searchParams);
  });
  const first = await tokens('document', client);
  await table.step('document', 'refresh', async () => {
    const second = await client.refresh(first.refresh_token);
    assert.equal(second.status, 200, JSON.stringify(second));
    await client.work(second.access_token);
  });
  await table.step('document', 'other document', async () => {
    const answer = await page.goto(client.ask({ client_id: `${origin}/other.json` }));
    assert.equal(answer.status(), 400);
    await look(page, 'other-document', SHOTS);
  });
  assertNone('document', faults);
  await context.close();
}

/** The pages that end a login, and the one that is no part of one. */
async function pages() {
  const program = await loopback();
  const client = await (await Client.discover(edge.url)).register(HOSTILE, program.address);
  const { page, context, faults } = await open({}, [BAD_STATUS]);
  const shows = (name, address, status, text) => table.step('pages', name, async () => {
    const answer = await page.goto(address);
    assert.equal(answer.status(), status);
    const policy = answer.headers()['content-security-policy'];
    assert.match(policy, /default-src 'none';.*form-action 'self'.*frame-ancestors 'none'/);
    assert.match(await page.textContent('main'), text);
    await look(page, name.replace(/\W+/g, '-'), SHOTS);
  });
  await shows('landing', edge.url, 200, /This is an MCP server/);
  await shows('tokens alone', edge.bearerUrl, 200, /Authorization: Bearer/);
  await shows('hostile name', client.ask(), 200, /“Bank .*…”/);
  await shows('unknown client', client.ask({ client_id: 'nobody' }), 400, /No application is registered/);
  await shows('foreign redirect', client.ask({ redirect_uri: 'https://evil.test/' }), 400, /not one that the application has registered/);
  await shows('wrong scope', client.ask({ scope: 'root' }), 400, /scope must be/);
  await table.step('pages', 'used code', async () => {
    const code = await edge.invite();
    const type = async () => {
      await page.goto(client.ask());
      await page.fill('#invite', code);
      await page.click('button[value=allow]');
    };
    const answer = program.next();
    await type();
    client.answered(await answer);
    await page.waitForSelector('text=Logged in');
    await type();
    await page.waitForSelector('[role=alert]');
    assert.match(await page.textContent('[role=alert]'), /used already/);
  });
  await table.step('pages', 'old page', async () => {
    await page.goto(client.ask());
    await page.evaluate(() => { document.querySelector('input[name=request]').value += 'x'; });
    await page.fill('#invite', 'any');
    await page.click('button[value=allow]');
    await page.waitForSelector('text=This did not work');
    await look(page, 'old-page', SHOTS);
  });
  // The page that goes on by itself, held where it is, to be looked at and left by its link.
  await table.step('pages', 'onward', async () => {
    await page.goto(client.ask());
    await page.route(/\/callback/, (route) => route.fulfill({ status: 204 }));
    await page.fill('#invite', await edge.invite());
    await page.click('button[value=allow]');
    await page.waitForSelector('text=Allowed');
    await look(page, 'allowed', SHOTS);
    await page.unroute(/\/callback/);
    const answer = program.next();
    await page.click('main a');
    client.answered(await answer);
  });
  assertNone('pages', faults);
  await context.close();
}

const HOSTILE = 'Bank <script>alert(1)</script> \u202Eknab & "friends" with a name that goes on and on, and on, and on';

function assertNone(head, faults) {
  for (const fault of faults) table.fault(`${head}: ${fault}`);
}

try {
  await Promise.all([clicks(), keyboard(), documented(), pages()]);
  await edge.end();
} catch (fault) {
  table.fault(fault.stack);
} finally {
  await browser.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await endAll();
}
table.print();
process.exit(table.faults.length === 0 ? 0 : 1);
