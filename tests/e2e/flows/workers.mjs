// The workers behind the edge, and what each can do.

const here = new URL('workers/', import.meta.url).pathname;
const python = process.env.E2E_PYTHON;
const node = process.execPath;

const said = (text) => text;
const form = { action: 'accept', content: { name: 'Ada', username: 'ada', email: 'ada@example.com' } };
const sample = { role: 'assistant', content: { type: 'text', text: 'a sample' }, model: 'none', stopReason: 'endTurn' };
const roots = { roots: [{ uri: 'file:///workspace', name: 'workspace' }] };

/**
 * `sleep(ms, mark)` is a call that lasts; with `marks` the worker says on its output how it ended, with `resumes` its
 * answer can be fetched after a disconnect. `asks` are calls within which the worker asks the client on the stream of the
 * call, and what the client answers; `asksAside` is asked on the stream of the session. `bridge` is what a client that
 * is held to the stateless revision finds at a worker of sessions: a resource, a prompt, and a call that changes
 * the resource; `calms` ends what that began, since the session is the tenant's and outlives its clients.
 */
export const workers = [
  {
    name: 'rmcp', modern: true, sessions: true, resumes: true, tasks: true, listens: true,
    argv: (port) => [process.env.FLOWS_RMCP, '--listen', `127.0.0.1:${port}`],
    echo: (text) => ['echo', { text }], echoed: said,
    sleep: (ms) => ['sleep', { ms }],
    asks: [
      ['test_sampling', { prompt: 'Say something' }, 'sampling/createMessage', sample, 'a sample'],
      ['test_elicitation', { message: 'Who is it?' }, 'elicitation/create', form, 'accept'],
    ],
    param: ['test_header_parameter', { region: 'north' }, 'Mcp-Param-Region'],
  },
  {
    name: 'everything', path: '/mcp', modern: false, sessions: true, resumes: true,
    argv: () => [node, '--import', `${here}loopback.mjs`, process.env.FLOWS_EVERYTHING, 'streamableHttp'],
    env: (port) => ({ PORT: `${port}` }),
    echo: (text) => ['echo', { message: text }], echoed: (text) => `Echo: ${text}`,
    sleep: (ms) => ['trigger-long-running-operation', { duration: ms / 1000, steps: 2 }],
    asks: [
      ['trigger-sampling-request', { prompt: 'Say something' }, 'sampling/createMessage', sample, 'a sample'],
      ['trigger-elicitation-request', {}, 'elicitation/create', form, 'ada@example.com'],
    ],
    asksAside: ['get-roots-list', 'roots/list', roots, 'file:///workspace'],
    tellsSession: /^Session initialized with ID: (.*)$/,
  },
  {
    name: 'mcp', path: '/mcp', modern: true, sessions: true, marks: true, told: true, listens: true,
    argv: (port) => [python, `${here}mcp_worker.py`, `${port}`],
    echo: (text) => ['echo', { text }], echoed: said,
    sleep: (ms, mark) => ['sleep', { ms, mark }],
    param: ['regional', { region: 'north' }, 'Mcp-Param-Region'],
    foreign: 'grüße',
  },
  {
    name: 'fastmcp', path: '/mcp', modern: true, sessions: true, marks: true, told: true,
    argv: (port) => [python, `${here}fastmcp_worker.py`, `${port}`],
    echo: (text) => ['echo', { text }], echoed: said,
    sleep: (ms, mark) => ['sleep', { ms, mark }],
  },
  {
    name: 'ts2', modern: true, sessions: false, marks: true, told: true, listens: true,
    argv: (port) => [node, `${process.env.FLOWS_NODE}/workers/ts2.mjs`, `${port}`],
    echo: (text) => ['echo', { text }], echoed: said,
    sleep: (ms, mark) => ['sleep', { ms, mark }],
  },
  {
    name: 'bridged', path: '/mcp', modern: false, sessions: true, resumes: true, listens: true,
    manifest: { bridge: 'modern' },
    argv: () => [node, '--import', `${here}loopback.mjs`, process.env.FLOWS_EVERYTHING, 'streamableHttp'],
    env: (port) => ({ PORT: `${port}` }),
    echo: (text) => ['echo', { message: text }], echoed: (text) => `Echo: ${text}`,
    sleep: (ms) => ['trigger-long-running-operation', { duration: ms / 1000, steps: 2 }],
    bridge: {
      resource: 'demo://resource/dynamic/text/1', prompt: 'simple-prompt',
      changes: ['toggle-subscriber-updates', {}], calms: ['toggle-subscriber-updates', {}],
    },
  },
  {
    name: 'mcp1', path: '/mcp', modern: false, sessions: true, marks: true, listens: true,
    manifest: { bridge: 'modern' },
    argv: (port) => [python, `${here}mcp1_worker.py`, `${port}`],
    env: () => ({ PYTHONPATH: process.env.FLOWS_PYTHON1 }),
    echo: (text) => ['echo', { text }], echoed: said,
    sleep: (ms, mark) => ['sleep', { ms, mark }],
    bridge: { resource: 'note://one', prompt: 'greet', changes: ['change', {}], lists: true },
  },
];

/** Whether requests of the stateless revision are served. */
export const stateless = (w) => w.modern || w.manifest?.bridge === 'modern';
