// Preloaded into a process (node --require): nothing in it may listen. A try is told on stderr and fails.
const net = require("node:net");

net.Server.prototype.listen = function refuse(...what) {
  process.stderr.write(`LISTEN ${JSON.stringify(what.map(String))}\n`);
  throw new Error("Nothing may listen in this test.");
};
