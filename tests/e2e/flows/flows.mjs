// What passes between a client and a worker, flow by flow. Each is `[name, whether the worker has it, what must be so]`;
// README.md says the same in a table.
import { setTimeout as pause } from 'node:timers/promises';

import { MODERN, Wire, sentinel } from './wire.mjs';
import { stateless } from './workers.mjs';

const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const ASKED = { sampling: {}, elicitation: {}, roots: {} };
const SERVED = ['2025-03-26', '2025-06-18', '2025-11-25', MODERN];

const call = (name, args, more = {}) => ({ name, arguments: args, ...more });

export const flows = [
  ['F1', stateless, async ({ w, wire, process }) => {
    const [name, args] = w.echo('modern');
    const answer = await wire.modern('tools/call', call(name, args), { id: 'one' });
    equal(answer.status, 200, 'status');
    absent(answer, 'mcp-session-id');
    const { result } = await answer.response('one');
    equal(words(result), w.echoed('modern'), 'answer');
    equal(result.resultType, 'complete', 'resultType');
    if (!w.marks) return;
    // To a modern client leaving is cancelling.
    const from = process.told.length;
    const left = await wire.modern('tools/call', call(...w.sleep(20_000, 'left')), { meta: { progressToken: 'left' } });
    await process.line(/^sleep left started/, { from });
    left.hangUp();
    await process.line(/^sleep left cancelled/, { from });
  }],

  ['F2', stateless, async ({ wire }) => {
    const { result } = await (await wire.modern('server/discover')).response(1);
    equal(result.cacheScope, 'private', 'cacheScope');
    const strange = result.supportedVersions.filter((version) => !SERVED.includes(version));
    equal(strange.join(' '), '', 'revisions that the edge does not serve');
    holds(result.supportedVersions.includes(MODERN), `the revisions lack ${MODERN}`);
  }],

  ['F3', stateless, async ({ w, wire }) => {
    const { result } = await (await wire.modern('tools/list')).response(1);
    equal(result.cacheScope, 'private', 'cacheScope');
    holds(result.tools.some((tool) => tool.name === w.echo('')[0]), 'the list lacks a tool');
  }],

  ['F5', (w) => w.tasks, async ({ wire }) => {
    const more = { capabilities: TASKS };
    const made = await (await wire.modern('tools/call', call('slow_compute', { seconds: 30 }), more)).response(1);
    equal(made.result.resultType, 'task', 'resultType');
    const { taskId } = made.result;
    const status = async () => (await (await wire.modern('tasks/get', { taskId }, more)).response(1)).result.status;
    equal(await status(), 'working', 'status');
    const cancelled = await (await wire.modern('tasks/cancel', { taskId }, more)).response(1);
    holds(cancelled.result, 'tasks/cancel has no result');
    await until(async () => (await status()) === 'cancelled', 'the task is cancelled');
    const unknown = await (await wire.modern('tasks/get', { taskId: `${taskId}x` }, more)).response(1);
    equal(unknown.error?.code, -32602, 'code for an unknown task');
  }],

  ['F6', (w) => !w.sessions, ({ w, wire, direct }) => opens(w, wire, direct)],
  ['F7', (w) => w.sessions, ({ w, wire, direct, process }) => opens(w, wire, direct, process)],

  ['F8', () => true, async ({ w, wire }) => {
    const session = await wire.open();
    const texts = ['a', 'b', 'c'];
    const answers = await Promise.all(texts.map(async (text) => {
      const [name, args] = w.echo(text);
      const answer = await session.request('tools/call', call(name, args), `id-${text}`);
      return words((await answer.response(`id-${text}`)).result);
    }));
    equal(answers.join(), texts.map(w.echoed).join(), 'answers of three calls at once');
  }],

  ['F9', () => true, async ({ w, wire }) => {
    const session = await wire.open();
    const stream = await session.stream();
    equal(stream.status, w.sessions ? 200 : 405, 'status');
    stream.hangUp();
  }],

  ['F10', (w) => w.resumes, ({ w, wire }) => resumed(w, wire)],

  ['F11', () => true, async ({ wire }) => {
    const session = await wire.open();
    equal((await session.end()).status, 204, 'status of DELETE');
    equal((await session.request('tools/list')).status, 404, 'status afterwards');
    equal((await session.end()).status, 404, 'status of a second DELETE');
  }],

  ['F12', (w) => w.marks, async ({ w, wire, process }) => {
    const session = await wire.open();
    const from = process.told.length;
    const left = session.request('tools/call', call(...w.sleep(1500, 'kept'), { _meta: { progressToken: 'kept' } }));
    await process.line(/^sleep kept started/, { from });
    (await left).hangUp();
    await process.line(/^sleep kept (done|cancelled)/, { from });
    await process.line(/^sleep kept done/, { from, ms: 0 });
  }],

  ['F13', () => true, async ({ w, wire, process }) => {
    const session = await wire.open();
    const from = process.told.length;
    const params = call(...w.sleep(w.marks ? 20_000 : 1500, 'ended'), { _meta: { progressToken: 'ended' } });
    const answer = await session.request('tools/call', params, 7);
    if (w.marks) await process.line(/^sleep ended started/, { from });
    const cancelled = await session.post({ method: 'notifications/cancelled', params: { requestId: 7 } });
    equal(cancelled.status, 202, 'status of the cancellation');
    if (w.marks) await process.line(/^sleep ended cancelled/, { from });
    // No answer to it comes; a worker may leave the stream open, so it is watched for longer than the call would last.
    const late = await Promise.race([
      answer.response(7).catch(() => undefined), pause(w.marks ? 500 : 2500, undefined, { ref: false }),
    ]);
    holds(late === undefined || late.error, `a cancelled call was answered: ${JSON.stringify(late)}`);
    answer.hangUp();
    const [name, args] = w.echo('after');
    equal(words((await (await session.request('tools/call', call(name, args), 8)).response(8)).result),
      w.echoed('after'), 'the next call');
  }],

  ['progress', () => true, async ({ w, wire }) => {
    const params = call(...w.sleep(200, 'told'), { _meta: { progressToken: 'token-1' } });
    const session = await wire.open();
    const eras = { legacy: () => session.request('tools/call', params) };
    if (stateless(w)) {
      eras.modern = () => wire.modern('tools/call', call(...w.sleep(200, 'told')), { meta: { progressToken: 'token-1' } });
    }
    for (const [era, send] of Object.entries(eras)) {
      const before = [];
      const { result } = await (await send()).response(1, before);
      holds(result && !result.isError, `${era}: ${JSON.stringify(result)}`);
      const progress = before.filter((message) => message.method === 'notifications/progress');
      holds(progress.length > 0, `${era}: no progress was told`);
      holds(progress.every((message) => message.params.progressToken === 'token-1'), `${era}: another's progress`);
    }
  }],

  ['asked', (w) => w.asks, async ({ w, wire }) => {
    const session = await wire.open(ASKED);
    await until(async () => {
      const { result } = await (await session.request('tools/list')).response(1);
      return w.asks.every(([name]) => result.tools.some((tool) => tool.name === name));
    }, 'the tools that ask are listed');
    const replies = new Map(w.asks.map(([, , method, reply]) => [method, reply]));
    const asked = new Set();
    const reply = async (message) => {
      asked.add(message.method);
      equal((await session.post({ id: message.id, result: replies.get(message.method) })).status, 202, 'status of an answer');
    };
    for (const [name, args, method, , expected] of w.asks) {
      const answer = await session.request('tools/call', call(name, args), `ask-${name}`);
      let result;
      for (let message; !result && (message = await answer.next()); ) {
        if (replies.has(message.method)) await reply(message);
        else if (message.id === `ask-${name}`) result = message.result ?? message.error;
      }
      holds(JSON.stringify(result).includes(expected), `${name}: ${JSON.stringify(result)}`);
      holds(asked.has(method), `${method} was not asked on the stream of the call`);
    }
  }],

  ['asked GET', (w) => w.asksAside, async ({ w, wire }) => {
    const [name, method, reply, expected] = w.asksAside;
    const session = await wire.open(ASKED);
    const stream = await session.stream();
    let asked;
    do asked = await stream.next(); while (asked.method !== method);
    equal((await session.post({ id: asked.id, result: reply })).status, 202, 'status of the answer');
    const { result } = await (await session.request('tools/call', call(name, {}), 3)).response(3);
    holds(JSON.stringify(result).includes(expected), JSON.stringify(result));
    stream.hangUp();
  }],

  ['param', (w) => w.param, async ({ w, wire }) => {
    const [name, args, header] = w.param;
    const [value] = Object.values(args);
    const send = (value) => wire.modern('tools/call', call(name, args), { headers: { [header]: value } });
    for (const good of [value, sentinel(value)]) {
      const { result } = await (await send(good)).response(1);
      holds(words(result).includes(value), JSON.stringify(result));
    }
    // Only the worker can know that this is wrong, so it is seen there.
    const wrong = await send('south');
    equal(wrong.status, 400, 'status of a header that the body contradicts');
    equal((await wrong.response(1)).error.code, -32020, 'code of it');
  }],

  ['name', stateless, async ({ w, wire }) => {
    const [name, args] = w.echo('named');
    const send = (header) => wire.modern('tools/call', call(name, args), { headers: { 'Mcp-Name': header } });
    equal(words((await (await send(sentinel(name))).response(1)).result), w.echoed('named'), 'a name in base64');
    const wrong = await send(sentinel(`${name}x`));
    equal(`${wrong.status} ${(await wrong.response(1)).error.code}`, '400 -32020', 'another name in base64');
    if (!w.foreign) return;
    equal(words((await (await wire.modern('tools/call', call(w.foreign, {}))).response(1)).result), w.foreign, 'a foreign name');
  }],

  ['trace', (w) => w.told, async ({ wire }) => {
    const meta = {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=1', baggage: 'b=2',
    };
    const headers = { 'X-Forwarded-For': '203.0.113.9', Cookie: 'c=3' };
    const { result } = await (await wire.modern('tools/call', call('told', {}), { meta, headers })).response(1);
    const told = JSON.parse(words(result));
    for (const [key, value] of Object.entries(meta)) equal(told.meta[key], value, key);
    holds(!JSON.stringify(told.headers).includes(wire.token), 'the client\'s credential reached the worker');
    for (const name of ['x-forwarded-for', 'cookie', 'mcp-session-id']) equal(told.headers[name], undefined, name);
  }],

  // From here on the worker is killed; it has to come back for the next.
  ['F14', () => true, async ({ w, wire, restart }) => {
    const session = await wire.open();
    await restart();
    const [name, args] = w.echo('again');
    const answer = await session.request('tools/call', call(name, args));
    // A worker without sessions has forgotten none.
    equal(answer.status, w.sessions ? 404 : 200, 'status in a session from before');
    const fresh = await wire.open();
    equal(words((await (await fresh.request('tools/call', call(name, args))).response(1)).result), w.echoed('again'), 'answer');
  }],

  ['F15', () => true, async ({ w, wire, process, start }) => {
    const session = await wire.open();
    await process.kill();
    const [name, args] = w.echo('down');
    const refused = {
      initialize: [() => wire.initialize(), 0],
      'legacy call': [() => session.request('tools/call', call(name, args), 5), 5],
      'server/discover': [() => wire.modern('server/discover', {}, { id: 'd' }), 'd'],
      'modern call': [() => wire.modern('tools/call', call(name, args), { id: 'm' }), 'm'],
    };
    for (const [what, [send, id]] of Object.entries(refused)) {
      const answer = await send();
      const { error, id: told } = await answer.response(id);
      if (!stateless(w) && ['server/discover', 'modern call'].includes(what) && answer.status === 400) continue;
      equal(answer.status, 503, `status of ${what}`);
      holds(answer.headers.get('retry-after'), `${what} has no Retry-After`);
      holds(error && told === id, `${what}: ${JSON.stringify(error)}`);
    }
    await start();
    await until(async () => (await wire.initialize()).status === 200, 'the worker is served again');
  }],
];

/** F4 takes as long as the run: opened here, and to be called again when the edge has been told to stop. */
export async function listen({ wire }) {
  const stream = await wire.modern('subscriptions/listen', { notifications: { toolsListChanged: true } }, { id: 'listen' });
  const first = await stream.next();
  equal(first.method, 'notifications/subscriptions/acknowledged', 'the first message');
  equal(first.params._meta?.['io.modelcontextprotocol/subscriptionId'], 'listen', 'subscriptionId');
  const end = stream.response('listen');
  end.catch(() => {});
  return {
    heard: () => until(() => stream.comments > 0, 'a keep-alive comment comes', 25_000),
    ended: async () => {
      const { result } = await end;
      equal(result?.resultType, 'complete', 'resultType of the completion');
      equal(await stream.next(), undefined, 'anything after the completion');
    },
  };
}

async function opens(w, wire, direct, process) {
  const from = process?.told.length;
  const answer = await wire.initialize();
  equal(answer.status, 200, 'status');
  const id = answer.headers.get('mcp-session-id');
  holds(/^[\x21-\x7e]+$/.test(id ?? ''), `the public id is ${id}`);
  equal((await answer.response(0)).result.protocolVersion, '2025-11-25', 'revision');
  if (!process) return;
  if (w.tellsSession) {
    const [, theirs] = w.tellsSession.exec(await process.line(w.tellsSession, { from }));
    holds(!JSON.stringify([...answer.headers]).includes(theirs), 'the worker\'s id came through');
  }
  // The worker has never heard of the public id.
  const strange = await direct.send('POST', { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' },
    { jsonrpc: '2.0', id: 1, method: 'tools/list' });
  holds([400, 404].includes(strange.status), `the worker knows the public id: ${strange.status}`);
}

/** The answer of a call whose connection broke is fetched from where it broke. */
async function resumed(w, wire) {
  const session = await wire.open();
  const params = call(...w.sleep(3000, 'resumed'), { _meta: { progressToken: 'resumed' } });
  const broken = await session.request('tools/call', params, 'long');
  await until(async () => broken.lastEvent || (await broken.next(), broken.lastEvent), 'an event has an id');
  const seen = broken.lastEvent;
  broken.hangUp();
  // Some workers go on with the call on the new stream, others only repeat what they have kept, once it is complete.
  for (let tries = 0; tries < 3; tries += 1) {
    const again = await session.stream(seen);
    equal(again.status, 200, 'status');
    const late = pause(5000, undefined, { ref: false });
    const told = await Promise.race([again.response('long').catch(() => undefined), late]);
    again.hangUp();
    if (told) return holds(told.result && !told.result.isError, JSON.stringify(told));
  }
  throw new Error('the answer cannot be fetched');
}

export const words = (result) => (result?.content ?? []).map((part) => part.text ?? '').join('');

export async function until(holds, what, ms = 10_000) {
  for (const end = Date.now() + ms; Date.now() < end; await pause(50)) if (await holds()) return;
  throw new Error(`not within ${ms / 1000} s: ${what}`);
}

export function holds(value, otherwise) {
  if (!value) throw new Error(otherwise);
}

export function equal(found, wanted, what) {
  if (found !== wanted) throw new Error(`${what}: ${JSON.stringify(found)} where ${JSON.stringify(wanted)} is wanted`);
}

function absent(answer, header) {
  holds(!answer.headers.has(header), `${header} came through`);
}
