// The same working day for every JavaScript client: what a person would do in a sandbox, and that nobody else can see it.
//
// A client is `connect(who) -> { version, list(), call(name, arguments), close() }` where `who` is one of the target's
// two tenants; one that lets its public session id be seen tells it as `publicSession`, and `knock` uses such an id with
// either tenant's token and returns the status. Every step has its own deadline and prints one line,
// `step<TAB>pass|fail<TAB>detail`.
import { createHash, randomBytes } from 'node:crypto';

export const TOOLS = [
  'close_session', 'exec', 'job_cancel', 'job_exec', 'job_poll', 'open_session', 'read_file', 'write_file',
];
const STEP_MS = 90_000;
const JOB_MS = 30_000;

export async function scenario({ connect, era, knock, denied }) {
  const nonce = randomBytes(6).toString('hex');
  const folder = `e2e-${nonce}`;
  // Every byte value, in an order that no text codec survives, and long enough to span several frames.
  const bytes = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), randomBytes(20_000)]);
  let client;
  let session;
  let home;
  let worst = 0;

  const step = async (name, run) => {
    try {
      const detail = await deadline(run(), STEP_MS, name);
      report(name, true, detail ?? '');
    } catch (error) {
      worst = 1;
      report(name, false, describe(error));
    }
  };
  const shell = (command, more = {}) => client.call('exec', { session, command, ...more });

  await step('connect', async () => {
    client = await connect('a');
    if (era && client.version) equal(client.version, era, 'negotiated version');
    return client.version ?? '';
  });
  if (!client) return 1;

  await step('list', async () => {
    equal((await client.list()).sort().join(' '), TOOLS.join(' '), 'tools');
  });
  await step('open', async () => {
    ({ session, home } = await open(client));
    return home;
  });
  await step('exec', async () => {
    text(await shell(`mkdir "$HOME/${folder}" && cd "$HOME/${folder}" && git init -q . && ls -A`), '.git');
    await client.call('write_file', { session, cwd: `${home}/${folder}`, path: 'sum', text: PROGRAM }).then(good);
    text(await shell('sh ./sum', { cwd: `${home}/${folder}` }), 'total=5050');
    const commit = 'git add sum && git -c user.name=e2e -c user.email=e2e@example.com commit -qm "Add sum"'
      + ' && git rev-list --count HEAD | sed s/^/commits=/';
    text(await shell(commit, { cwd: `${home}/${folder}` }), 'commits=1');
    text(await shell('cat; exit 3', { stdin: 'fed by stdin' }), 'fed by stdin');
  });
  await step('binary', async () => {
    await client.call('write_file', { session, cwd: `${home}/${folder}`, path: 'blob', base64: bytes.toString('base64') })
      .then(good);
    same(await readBytes(client, session, `${home}/${folder}/blob`), bytes);
    text(await shell(`sha256sum < blob`, { cwd: `${home}/${folder}` }), createHash('sha256').update(bytes).digest('hex'));
  });
  await step('job', async () => {
    const command = 'for i in 1 2 3 4 5; do echo tick-$i; sleep 0.1; done; echo to-stderr >&2; echo last-line; exit 7';
    const job = started(await client.call('job_exec', { session, command }));
    const { kind, exit_code: code, output } = await follow(client, job);
    equal(`${kind} ${code}`, 'exited 7', 'end of the job');
    for (const word of ['tick-1', 'tick-5', 'to-stderr', 'last-line']) contains(output, word);
  });
  await step('close', async () => {
    good(await client.call('close_session', { session }));
    bad(await attempt(client, 'exec', { session, command: 'true' }), 'a closed session');
    await client.close();
  });
  await step('reconnect', async () => {
    client = await connect('a');
    ({ session, home } = await open(client));
    text(await shell('git rev-list --count HEAD | sed s/^/commits=/', { cwd: `${home}/${folder}` }), 'commits=1');
    same(await readBytes(client, session, `${home}/${folder}/blob`), bytes);
  });
  await step('apart', () => apart(client, session, connect, nonce, knock));
  await client.close().catch(() => {});

  if (denied) {
    await step('denied', async () => {
      let stranger;
      try {
        stranger = await denied();
        await stranger.list();
      } catch (error) {
        return describe(error).slice(0, 60);
      } finally {
        await stranger?.close().catch(() => {});
      }
      throw new Error('a wrong token was let in');
    });
  }
  return worst;
}

/** Two tenants at once: each reaches its own, and the same calls with the other's ids are refused. */
async function apart(owner, session, connect, nonce, knock) {
  const guest = await connect('b');
  try {
    const theirs = await open(guest);
    const mark = `mark-${nonce}`;
    const search = `grep -rs --exclude-dir=proc ${mark.slice(0, 8)}'${mark.slice(8)}' "$HOME" /workspace /tmp | sort -u`;
    const write = (who, id, word) => who.call('exec', { session: id, command: `echo ${mark}-${word} > "$HOME/${mark}"` });
    await Promise.all([write(owner, session, 'owner').then(good), write(guest, theirs.session, 'guest').then(good)]);

    const [mine, other] = await Promise.all([
      owner.call('exec', { session, command: search }), guest.call('exec', { session: theirs.session, command: search }),
    ]);
    text(mine, `${mark}-owner`), lacks(mine, `${mark}-guest`);
    text(other, `${mark}-guest`), lacks(other, `${mark}-owner`);

    const uses = {
      exec: { session, command: `cat "$HOME/${mark}"` },
      write_file: { session, path: `/tmp/${mark}`, text: 'mine' },
      read_file: { session, path: `/tmp/${mark}` },
      job_exec: { session, command: 'sleep 60' },
    };
    for (const [name, args] of Object.entries(uses)) bad(await attempt(guest, name, args), `${name} with a foreign session`);
    const done = {};
    for (const [name, args] of Object.entries(uses)) done[name] = good(await owner.call(name, args));

    const job = started(done.job_exec);
    bad(await attempt(guest, 'job_poll', { job_id: job, wait_ms: 0 }), 'job_poll of a foreign job');
    bad(await attempt(guest, 'job_cancel', { job_id: job }), 'job_cancel of a foreign job');
    equal((await poll(owner, { job_id: job, wait_ms: 0 })).state, 'running', 'state after the foreign cancel');
    good(await owner.call('job_cancel', { job_id: job }));
    equal((await follow(owner, job)).kind, 'cancelled', 'state after the owner\'s cancel');

    bad(await attempt(guest, 'close_session', { session }), 'close_session of a foreign session', true);
    text(await owner.call('exec', { session, command: 'echo still-open' }), 'still-open');

    if (knock && owner.publicSession) {
      equal(await knock(owner.publicSession, 'b'), 403, 'status for a foreign public session');
      equal(await knock(owner.publicSession, 'a'), 200, 'status for one\'s own public session');
    }
  } finally {
    await guest.close();
  }
}

async function open(client) {
  const result = good(await client.call('open_session', {}));
  const told = result.structuredContent ?? {};
  if (typeof told.session !== 'string') throw new Error(`open_session told no session: ${JSON.stringify(result)}`);
  contains(words(result), told.session);
  return told;
}

function started(result) {
  const told = good(result).structuredContent ?? JSON.parse(words(result));
  if (typeof told.job_id !== 'string') throw new Error(`job_exec told no job_id: ${JSON.stringify(result)}`);
  return told.job_id;
}

/** Polls as the tool's description says: until the state is terminal and nothing more is to be read. */
async function follow(client, job) {
  const end = Date.now() + JOB_MS;
  let cursor = 0;
  let output = '';
  while (Date.now() < end) {
    const page = await poll(client, { job_id: job, cursor, wait_ms: 2000 });
    output += page.chunks.map((chunk) => chunk.text).join('');
    cursor = page.next_cursor;
    if (page.state === 'terminal' && !page.has_more) return { ...page.terminal, output };
  }
  throw new Error(`job ${job} did not end within ${JOB_MS} ms: ${output}`);
}

async function poll(client, args) {
  return JSON.parse(words(good(await client.call('job_poll', args))));
}

async function readBytes(client, session, path) {
  const { content } = good(await client.call('read_file', { session, path }));
  const blob = content.find((block) => block.type === 'resource')?.resource?.blob;
  if (!blob) throw new Error(`read_file of bytes brought no blob but ${content.map((block) => block.type)}`);
  return Buffer.from(blob, 'base64');
}

/** A call that should be refused, however the client shows a refusal. */
async function attempt(client, name, args) {
  try {
    return await client.call(name, args);
  } catch (error) {
    return { isError: true, content: [{ type: 'text', text: describe(error) }] };
  }
}

const words = (result) => (result.content ?? []).map((block) => block.text ?? '').join('\n');
const describe = (error) => [error?.message ?? String(error), error?.cause?.message].filter(Boolean).join(': ');

function good(result) {
  if (result.isError) throw new Error(`tool error: ${words(result)}`);
  return result;
}

function bad(result, what, mayBeUnknown = false) {
  if (result.isError) return;
  // Closing is idempotent: a server may answer for an id that is not the caller's as for one that never was.
  if (mayBeUnknown && result.structuredContent?.closed === false) return;
  throw new Error(`${what} was accepted: ${words(result).slice(0, 200)}`);
}

function text(result, part) {
  contains(words(good(result)), part);
}

function lacks(result, part) {
  if (words(good(result)).includes(part)) throw new Error(`\`${part}\` was seen: ${words(result).slice(0, 200)}`);
}

function contains(whole, part) {
  if (!whole.includes(part)) throw new Error(`\`${part}\` is not in \`${whole.slice(0, 300)}\``);
}

function equal(seen, wanted, what) {
  if (seen !== wanted) throw new Error(`${what}: \`${seen}\` instead of \`${wanted}\``);
}

function same(seen, wanted) {
  if (!seen.equals(wanted)) throw new Error(`${seen.length} bytes came back, not the ${wanted.length} that were written`);
}

function report(name, passed, detail) {
  process.stdout.write(`${name}\t${passed ? 'pass' : 'fail'}\t${String(detail).replaceAll(/\s+/g, ' ').slice(0, 400)}\n`);
}

function deadline(promise, after, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took over ${after} ms`)), after);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Runs under python3 where the sandbox has one, else under the shell that reads it.
const PROGRAM = `if command -v python3 >/dev/null; then
  exec python3 -c 'print("total=%d" % sum(range(101)))'
fi
total=0 i=0
while [ $i -lt 101 ]; do total=$((total + i)) i=$((i + 1)); done
echo total=$total
`;
