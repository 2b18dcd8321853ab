// What must be so at each server: `[name, whether the server has it, what must be so]`. README.md says it in a table.
import { equal, holds, until, words } from '../flows/flows.mjs';
import { MODERN } from '../flows/wire.mjs';

const call = (name, args) => ({ name, arguments: args });

export const checks = [
  ['session', (w) => w.sessions, async ({ w, wire }) => {
    const session = await wire.open();
    const { result: { tools } } = await (await session.request('tools/list', {}, 'l')).response('l');
    const [name, args] = w.echo('é');
    holds(tools.some((tool) => tool.name === name), `the list lacks ${name}`);
    said(w, await (await session.request('tools/call', call(name, args), 'c')).response('c'), 'é');
    equal((await session.end()).status, 204, 'status of DELETE');
    equal((await session.request('tools/list')).status, 404, 'status afterwards');
  }],

  ['modern', (w) => w.modern, async ({ w, wire }) => {
    const discovered = await (await wire.modern('server/discover')).response(1);
    holds(discovered.result.supportedVersions.includes(MODERN), JSON.stringify(discovered));
    const [name, args] = w.echo('é');
    const answer = await wire.modern('tools/call', call(name, args), { id: 'm' });
    equal(answer.headers.get('mcp-session-id'), null, 'session id');
    said(w, await answer.response('m'), 'é');
    const unknown = await wire.modern('no/such', {}, { id: 'n' });
    equal(`${unknown.status} ${(await unknown.response('n')).error.code}`, '404 -32601', 'a method that it does not know');
  }],

  ['no modern', (w) => !w.modern, async ({ wire }) => {
    const answer = await wire.modern('server/discover');
    equal(`${answer.status} ${(await answer.response(1)).error.code}`, '400 -32600', 'the word to fall back on');
  }],

  ['no session', (w) => !w.sessions, async ({ wire }) => {
    const answer = await wire.initialize();
    equal(`${answer.status} ${(await answer.response(0)).error.code}`, '400 -32022', 'the answer to initialize');
  }],

  ['equal ids', (w) => w.echoes, async ({ w, wire }) => {
    const send = w.modern
      ? (text) => wire.modern('tools/call', call(...w.echo(text)), { id: 7 })
      : async (text) => (await wire.open()).request('tools/call', call(...w.echo(text)), 7);
    const texts = Array.from({ length: 16 }, (_, i) => `text ${i}`);
    const answers = await Promise.all(texts.map(async (text) => words((await (await send(text)).response(7)).result)));
    equal(answers.join(), texts.map(w.echoed).join(), 'answers of calls with one id');
  }],

  ['progress', (w) => w.progresses, async ({ w, wire }) => {
    const sends = [];
    if (w.sessions) {
      const session = await wire.open();
      sends.push((params) => session.request('tools/call', { ...params, _meta: { progressToken: 'p' } }));
    }
    if (w.modern) sends.push((params) => wire.modern('tools/call', params, { meta: { progressToken: 'p' } }));
    for (const send of sends) {
      const before = [];
      const { result } = await (await send(call(...w.sleep(200, 'told')))).response(1, before);
      holds(result && !result.isError, JSON.stringify(result));
      const told = before.filter(({ method }) => method === 'notifications/progress');
      holds(told.length > 0 && told.every(({ params }) => params.progressToken === 'p'), JSON.stringify(before));
    }
  }],

  ['asked', (w) => w.asks, async ({ wire }) => {
    // Logging, and a question of the server's within a call.
    const session = await wire.open({ sampling: {} });
    const stream = await session.stream();
    equal(stream.status, 200, 'status of the stream');
    equal((await session.stream()).status, 409, 'status of a second one');
    const level = await session.request('logging/setLevel', { level: 'debug' }, 2);
    holds((await level.response(2)).result, 'the level is set');
    const answer = await session.request('tools/call', call('trigger-sampling-request', { prompt: 'Say it' }), 3);
    for (let message; (message = await answer.next()); ) {
      if (message.method === 'sampling/createMessage') {
        const result = { role: 'assistant', content: { type: 'text', text: 'a sample' }, model: 'none' };
        equal((await session.post({ id: message.id, result })).status, 202, 'status of the answer to it');
      } else if (message.id === 3) {
        holds(JSON.stringify(message.result).includes('a sample'), JSON.stringify(message));
        break;
      }
    }
    const logging = await session.request('tools/call', call('toggle-simulated-logging', {}), 4);
    holds((await logging.response(4)).result, 'logging is on');
    let logged;
    do logged = await stream.next(); while (logged.method !== 'notifications/message');
    stream.hangUp();
    await session.end();
  }],

  ['cancel', (w) => w.dies, async ({ w, wire, process }) => {
    const from = process.told.length;
    const left = await wire.modern('tools/call', call(...w.sleep(20_000, 'left')), { meta: { progressToken: 'left' } });
    await process.line(/sleep left started/, { from });
    left.hangUp();
    await process.line(/sleep left cancelled/, { from });
  }],

  ['killed', (w) => w.dies, async ({ w, wire, process: worker }) => {
    const other = w.sessions && await wire.open();
    const from = worker.told.length;
    const lost = wire.modern('tools/call', call(...w.sleep(20_000, 'lost')), { id: 'lost' });
    const [, pid] = /in (\d+)/.exec(await worker.line(/sleep lost started in \d+/, { from }));
    process.kill(Number(pid), 'SIGKILL');
    const answer = await lost;
    const { error } = await answer.response('lost');
    equal(answer.status, 502, 'status of the call that it was in');
    holds(/outcome is unknown/.test(error.message), JSON.stringify(error));
    if (other) {
      // A session has a process of its own.
      said(w, await (await other.request('tools/call', call(...w.echo('still')), 1)).response(1), 'still');
    }
    // Another is started.
    await until(async () => {
      const again = await wire.modern('tools/call', call(...w.echo('again')), { id: 'again' });
      const told = await again.response('again');
      if (again.status === 200) said(w, told, 'again');
      else equal(again.status, 503, 'status while it is left alone');
      return again.status === 200;
    }, 'a process is started again', 20_000);
  }],

  ['sessions apart', (w) => w.dies && w.sessions, async ({ w, wire }) => {
    const [one, two] = [await wire.open(), await wire.open()];
    const pid = async (session) => Number(words((await (await session.request('tools/call', call('pid', {}), 1)).response(1)).result));
    const [first, second] = [await pid(one), await pid(two)];
    holds(first !== second, 'two sessions have one process');
    process.kill(first, 'SIGKILL');
    equal(await pid(two), second, 'the other session\'s process');
    // A call that comes before its death is known is told that its outcome is not.
    await until(async () => (await one.request('tools/list')).status === 404, 'the session whose process is gone is gone');
    await two.end();
  }],
];

function said(w, message, text) {
  holds(message.result && !message.result.isError, JSON.stringify(message));
  const [found, wanted] = [words(message.result), w.echoed(text)];
  holds(wanted instanceof RegExp ? wanted.test(found) : found === wanted, `the answer is ${JSON.stringify(found)}`);
}
