// node --import ./loopback.mjs PROGRAM: whatever PROGRAM listens on, it listens on 127.0.0.1.
import { Server } from 'node:net';

const listen = Server.prototype.listen;

Server.prototype.listen = function (...given) {
  const done = given.find((argument) => typeof argument === 'function');
  const port = typeof given[0] === 'object' ? given[0].port : Number(given[0]);
  if (!Number.isInteger(port)) throw new Error('a port is wanted here, and nothing else is let listen');
  return listen.call(this, { port, host: '127.0.0.1' }, done);
};
