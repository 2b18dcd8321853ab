// The stdio servers, each made a worker by `playground worker stdio`, and what each can do; for `echo`, `sleep` and the
// like see ../flows/workers.mjs. Three are from npm, two from PyPI, and two show what the published ones do not.
const node = process.execPath;
const python = process.env.E2E_PYTHON;
const packages = process.env.STDIO_NODE;
const npm = (name) => `${packages}/node_modules/@modelcontextprotocol/${name}/dist/index.js`;

const note = 'kept in a file';

export const servers = (folder) => [
  {
    name: 'everything', sessions: true, progresses: true,
    argv: [node, npm('server-everything'), 'stdio'],
    echo: (text) => ['echo', { message: text }], echoed: (text) => `Echo: ${text}`, echoes: true,
    sleep: (ms) => ['trigger-long-running-operation', { duration: ms / 1000, steps: 4 }],
    asks: true,
  },
  {
    name: 'filesystem', sessions: true, files: { 'note.txt': note },
    argv: [node, npm('server-filesystem'), `${folder}/filesystem`],
    echo: () => ['read_text_file', { path: `${folder}/filesystem/note.txt` }], echoed: () => note,
  },
  {
    name: 'memory', sessions: true, files: { 'memory.json': '' },
    argv: [node, npm('server-memory')], options: ['--env', `MEMORY_FILE_PATH=${folder}/memory/memory.json`],
    echo: () => ['search_nodes', { query: 'nobody' }], echoed: () => JSON.stringify({ entities: [], relations: [] }, null, 2),
  },
  {
    name: 'time', sessions: true, modern: true,
    argv: [python, '-m', 'mcp_server_time', '--local-timezone', 'UTC'],
    options: ['--env', `PYTHONPATH=${process.env.STDIO_PYTHON}`],
    echo: () => ['convert_time', { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Kolkata' }],
    echoed: () => /\+5\.5h/,
  },
  {
    name: 'git', sessions: true, modern: true, files: {}, repository: true,
    argv: [python, '-m', 'mcp_server_git', '--repository', `${folder}/git`],
    options: ['--env', `PYTHONPATH=${process.env.STDIO_PYTHON}`],
    echo: () => ['git_status', { repo_path: `${folder}/git` }], echoed: () => /No commits yet/,
  },
  {
    name: 'ts2', sessions: true, modern: true, progresses: true, dies: true,
    argv: [node, `${packages}/servers/ts2.mjs`, 'serve'],
    echo: (text) => ['echo', { text }], echoed: (text) => text, echoes: true,
    sleep: (ms, mark) => ['sleep', { ms, mark }],
  },
  {
    name: 'ts2-modern', sessions: false, modern: true, progresses: true, dies: true,
    argv: [node, `${packages}/servers/ts2.mjs`, 'reject'],
    echo: (text) => ['echo', { text }], echoed: (text) => text, echoes: true,
    sleep: (ms, mark) => ['sleep', { ms, mark }],
  },
];
