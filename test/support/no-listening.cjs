// Preloaded into a process (node --require): listening fails and is reported on stderr.
const net = require("node:net");

net.Server.prototype.listen = function refuse(...what) {
  process.stderr.write(`LISTEN ${JSON.stringify(what.map(String))}\n`);
  throw new Error("Nothing may listen in this test.");
};
