// node --import ./loopback.mjs PROGRAM: whatever PROGRAM listens on, it listens on 127.0.0.1, and what it serves at /mcp it
// serves at / as well, where the edge asks.
import http from 'node:http';
import { Server } from 'node:net';

const listen = Server.prototype.listen;

Server.prototype.listen = function (...given) {
  const done = given.find((argument) => typeof argument === 'function');
  const port = typeof given[0] === 'object' ? given[0].port : Number(given[0]);
  if (!Number.isInteger(port)) throw new Error('a port is wanted here, and nothing else is let listen');
  return listen.call(this, { port, host: '127.0.0.1' }, done);
};

const emit = http.Server.prototype.emit;

http.Server.prototype.emit = function (event, ...given) {
  if (event === 'request' && given[0].url === '/') given[0].url = '/mcp';
  return emit.call(this, event, ...given);
};
