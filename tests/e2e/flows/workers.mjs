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
 * call, and what the client answers; `asksAside` is asked on the stream of the session.
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
];
