import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { createInterface } from "node:readline";
import { root } from "./suites.mjs";

/** Starts a server process. Resolves to its URL, which `readUrl` finds in a line of its output, and a function that stops it. */
export function startServer(args, readUrl) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = () => {
    child.kill("SIGTERM");
    return ended;
  };
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const url = readUrl(line);
      if (url) resolve({ url, stop });
    });
    void ended.then((code) => reject(new Error(`${args.join(" ")} ended with ${code} before it served.`)));
  });
}

/** Forwards requests unchanged, except for a bearer token: the conformance suite cannot send one. */
export async function startForwarder(target, token) {
  const { hostname: host, port, pathname: path } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const forwarded = request({ host, port, path, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}${path}`, stop };
}
