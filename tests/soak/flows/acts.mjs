// What clients do, each act `[how often, whether the worker has it, what must be so]`. An act throws `Wrong` where an
// answer is not its own; whatever else goes wrong is judged by whether the worker was away meanwhile.
import { setTimeout as pause } from 'node:timers/promises';

const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

export class Wrong extends Error {}
/** An answer that says that there is none. */
export class Refused extends Error {
  constructor(status, error) {
    super(`${status} ${JSON.stringify(error)}`);
    Object.assign(this, { status, code: error?.code });
  }
}

export const acts = {
  'modern call': [8, () => true, async ({ lane: { wire }, word, id }) => {
    await echoes(await wire.modern('tools/call', { name: 'echo', arguments: { text: word } }, { id }), id, word);
  }],
  discover: [2, () => true, async ({ lane: { wire }, id }) => {
    const { cacheScope } = await result(await wire.modern('server/discover', {}, { id }), id);
    same(cacheScope, 'private', 'cacheScope');
  }],
  list: [2, () => true, async ({ lane: { wire }, id }) => {
    const { tools } = await result(await wire.modern('tools/list', {}, { id }), id);
    same(tools.some((tool) => tool.name === 'echo'), true, 'echo is listed');
  }],
  'session of one visit': [3, () => true, async ({ lane, word }) => {
    const session = await opened(lane);
    await Promise.all([0, 1, 2].map(async (i) => {
      const params = { name: 'echo', arguments: { text: `${word}-${i}` } };
      await echoes(await session.request('tools/call', params, i), i, `${word}-${i}`);
    }));
    await ended(session);
    const after = await session.request('tools/list', undefined, 9);
    await after.text();
    same(after.status, 404, 'status in an ended session');
  }],
  'session kept': [8, () => true, async (act) => {
    const { lane, seat, word, id } = act;
    if (seat.session && Date.now() - seat.session.since > 5000) {
      const old = seat.session;
      seat.session = undefined;
      await ended(old);
    }
    seat.session ??= await opened(lane);
    try {
      await echoes(await seat.session.request('tools/call', { name: 'echo', arguments: { text: word } }, id), id, word);
    } catch (fault) {
      // What the session was from before the worker's end is the act's beginning.
      if (fault.status === 404) act.since = Math.min(act.since, seat.session.since);
      seat.session = undefined;
      throw fault;
    }
  }],
  'session of another tenant': [1, () => true, async ({ lane, others, id }) => {
    const other = others[id.length % others.length];
    if (!other.shown) return;
    const answer = await lane.wire.send('POST', { 'Mcp-Session-Id': other.shown, 'MCP-Protocol-Version': '2025-11-25' },
      { jsonrpc: '2.0', id, method: 'tools/list' });
    await answer.text();
    if (![403, 404].includes(answer.status)) throw new Wrong(`another tenant's session was served: ${answer.status}`);
  }],
  'wrong token': [1, () => true, async ({ lane: { wire }, id }) => {
    const stranger = Object.assign(Object.create(Object.getPrototypeOf(wire)), { url: wire.url, token: `${wire.token}x` });
    const answer = await stranger.modern('tools/list', {}, { id });
    await answer.text();
    if (![401, 429].includes(answer.status)) throw new Wrong(`a wrong token was let in: ${answer.status}`);
  }],
  progress: [3, ({ sleeps }) => sleeps, async ({ lane: { wire }, word, id }) => {
    const answer = await wire.modern('tools/call', sleep(60), { id, meta: { progressToken: word } });
    await own(answer, id, word);
  }],
  'legacy progress': [3, ({ sleeps }) => sleeps, async ({ lane, word, id }) => {
    const session = await opened(lane);
    await own(await session.request('tools/call', { ...sleep(60), _meta: { progressToken: word } }, id), id, word);
    await ended(session);
  }],
  'modern client leaves': [3, ({ sleeps }) => sleeps, async ({ lane: { wire }, word, id }) => {
    const answer = await wire.modern('tools/call', sleep(5000), { id, meta: { progressToken: word } });
    await first(answer);
    answer.hangUp();
  }],
  // It leaves its session as well, which a clock has to end.
  'legacy client leaves': [2, ({ sleeps }) => sleeps, async ({ lane, word, id }) => {
    const session = await opened(lane);
    const answer = await session.request('tools/call', { ...sleep(400), _meta: { progressToken: word } }, id);
    await first(answer);
    answer.hangUp();
  }],
  cancelled: [2, ({ sleeps }) => sleeps, async ({ lane, word, id }) => {
    const session = await opened(lane);
    const answer = await session.request('tools/call', { ...sleep(5000), _meta: { progressToken: word } }, id);
    await first(answer);
    const told = await session.post({ method: 'notifications/cancelled', params: { requestId: id } });
    await told.text();
    if (told.status !== 202) throw new Refused(told.status);
    for (let message; (message = await answer.next()); ) {
      if (message.id === id && message.result) throw new Wrong('a cancelled call was answered');
    }
    await ended(session);
  }],
  task: [2, ({ tasks }) => tasks, async ({ lane: { wire }, id }) => {
    const more = { id, capabilities: TASKS };
    const { taskId } = await result(await wire.modern('tools/call', { name: 'slow_compute', arguments: { seconds: 2 } }, more), id);
    same((await result(await wire.modern('tasks/get', { taskId }, more), id)).taskId, taskId, 'task');
    await result(await wire.modern('tasks/cancel', { taskId }, more), id);
  }],
  listen: [2, ({ listens }) => listens, async ({ lane: { wire }, id, chance }) => {
    const stream = await wire.modern('subscriptions/listen', { notifications: { toolsListChanged: true } }, { id });
    const ack = await first(stream);
    same(ack.params?._meta?.['io.modelcontextprotocol/subscriptionId'], id, 'subscription');
    await pause(chance(300));
    stream.hangUp();
  }],
  'stream of a session': [1, ({ sessions }) => sessions, async ({ lane, chance }) => {
    const session = await opened(lane);
    const stream = await session.stream();
    if (stream.status !== 200) throw new Refused(stream.status);
    await pause(chance(300));
    stream.hangUp();
    await ended(session);
  }],
};

const sleep = (ms) => ({ name: 'sleep', arguments: { ms } });

async function opened(lane) {
  const since = Date.now();
  const session = Object.assign(await lane.wire.open(), { since });
  lane.shown = session.id;
  return session;
}

async function ended(session) {
  const answer = await session.end();
  await answer.text();
  if (answer.status !== 204) throw new Refused(answer.status);
}

async function first(answer) {
  for (let message; (message = await answer.next()); ) {
    if (message.error) throw new Refused(answer.status, message.error);
    if (message.method) return message;
  }
  throw new Refused(answer.status, { message: 'ended without a message' });
}

/** The result, with nobody else's id. */
async function result(answer, id, before = []) {
  for (let message; (message = await answer.next()); ) {
    if (message.error) throw new Refused(answer.status, message.error);
    if (message.result) {
      same(message.id, id, 'id');
      return message.result;
    }
    before.push(message);
  }
  throw new Refused(answer.status, { message: 'ended without a response' });
}

async function echoes(answer, id, word) {
  same((await result(answer, id)).content?.[0]?.text, word, 'echo');
}

async function own(answer, id, token) {
  const before = [];
  await result(answer, id, before);
  const told = before.filter((message) => message.method === 'notifications/progress');
  same(told.length, 3, 'progress notifications');
  for (const { params } of told) same(params.progressToken, token, 'progress token');
}

function same(found, wanted, what) {
  if (found !== wanted) throw new Wrong(`${what}: ${JSON.stringify(found)} where ${JSON.stringify(wanted)} is wanted`);
}
