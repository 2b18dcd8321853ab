// Both TypeScript clients: the same but for how the answer of a login is handed over.
import { provider, watched } from './provider.mjs';

/** A connection with a login that is `keep`, or with a configured `token`. */
export const typescript = ({ client, Transport, Unauthorized, finish }) => async ({ url, keep, person, token, seen = [] }) => {
  const options = token
    ? { requestInit: { headers: { Authorization: `Bearer ${token}` } } }
    : { authProvider: provider(keep, person) };
  const open = async () => {
    const transport = new Transport(new URL(url), { ...options, fetch: watched(seen) });
    const connection = client();
    try {
      await connection.connect(transport);
      return { connection };
    } catch (fault) {
      if (token || !(fault instanceof Unauthorized)) throw fault;
      return { transport };
    }
  };
  let { connection, transport } = await open();
  if (transport) {
    await finish(transport, keep.answer);
    ({ connection } = await open());
    if (!connection) throw new Error('there is a login, and it is not enough');
  }
  return {
    list: async () => (await connection.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => connection.callTool({ name, arguments: args }),
    spoil: () => { keep.tokens = { ...keep.tokens, access_token: 'spoilt' }; },
    close: () => connection.close(),
  };
};
