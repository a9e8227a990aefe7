// Preloaded into a process (node --require): connections of the process and its forks fail and are reported on stderr.
const childProcess = require("node:child_process");
const dgram = require("node:dgram");
const dns = require("node:dns");
const { syncBuiltinESMExports } = require("node:module");
const net = require("node:net");

function refuse(...what) {
  process.stderr.write(`NETWORK ${JSON.stringify(what.map(String))}\n`);
  throw new Error("There is no network in this test.");
}
net.Socket.prototype.connect = refuse; // http, https, tls and fetch use it
dgram.Socket.prototype.send = refuse;
for (const name of Object.keys(dns)) if (/^(lookup|resolve)/.test(name)) dns[name] = refuse;
for (const name of Object.keys(dns.promises)) if (/^(lookup|resolve)/.test(name)) dns.promises[name] = refuse;
const { fork } = childProcess;
childProcess.fork = (entry, args, options) => {
  const execArgv = [...(options?.execArgv ?? []), "--require", __filename];
  return fork(entry, args, { ...options, execArgv });
};
syncBuiltinESMExports();
