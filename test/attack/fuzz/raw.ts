const CRLF = "\r\n";

/** Bytes that no HTTP client would send: broken framing, smuggling, foreign protocols. The server answers or closes the connection, and keeps serving. */
export function rawRequests(authorization: string): Buffer[] {
  const head = (line: string, ...headers: string[]) =>
    [line, "Host: 127.0.0.1", `Authorization: ${authorization}`, ...headers, "", ""].join(CRLF);
  const post = (...headers: string[]) => head("POST /v1/checkpoint/list HTTP/1.1", "Content-Type: application/json", ...headers);
  const texts = [
    "",
    CRLF.repeat(100),
    "GET /\r\n",
    "GET / HTTP/0.9\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003",
    "SSH-2.0-OpenSSH_9.0\r\n",
    head("GET /health HTTP/1.1", "Connection: close").repeat(50),
    head("GET /\u0000\u00ff\u00fe HTTP/1.1"),
    head("GET /v1/checkpoint/list?\u00c3\u0028=\u00ff HTTP/1.1"),
    head("G\u0000T / HTTP/1.1"),
    head(`${"A".repeat(5_000)} / HTTP/1.1`),
    head(`GET /${"a".repeat(20_000)} HTTP/1.1`),
    head("GET / HTTP/1.1", `X-Large: ${"a".repeat(20_000)}`),
    head("GET / HTTP/1.1", ...Array.from({ length: 3_000 }, (_, index) => `X-${index}: 1`)),
    head("GET / HTTP/1.1", "X-Broken: a\u0000b"),
    head("GET / HTTP/1.1", "Host: second.example"),
    head("GET / HTTP/1.1", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
    `${post("Content-Length: 10", "Content-Length: 20")}{}`,
    `${post("Content-Length: 4", "Transfer-Encoding: chunked")}0${CRLF}${CRLF}GET /v1/key/list HTTP/1.1${CRLF}${CRLF}`,
    `${post("Content-Length: -1")}{}`,
    `${post("Content-Length: 99999999999999999999")}{}`,
    `${post("Content-Length: 100")}{`,
    `${post("Transfer-Encoding: chunked")}zz${CRLF}{}`,
    `${post("Transfer-Encoding: chunked")}2${CRLF}{}${CRLF}`,
    `${post("Transfer-Encoding: chunked")}fffffffffffffffff${CRLF}{}`,
    `${post("Transfer-Encoding: chunked")}2;${"x".repeat(30_000)}${CRLF}{}${CRLF}0${CRLF}${CRLF}`,
    `${post("Transfer-Encoding: chunked")}2${CRLF}{}${CRLF}0${CRLF}Authorization: Bearer x${CRLF}${CRLF}`,
    `${post("Transfer-Encoding: gzip, chunked")}2${CRLF}{}${CRLF}0${CRLF}${CRLF}`,
    post("Expect: 100-continue", "Content-Length: 2"),
    head("CONNECT 127.0.0.1:1 HTTP/1.1"),
    head("GET http://[::1/ HTTP/1.1"),
    head("GET //attacker.example/%2e%2e HTTP/1.1"),
    head("GET * HTTP/1.1"),
    head("GET / HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade"),
    head("GET / HTTP/9.9"),
  ];
  return texts.map((text) => Buffer.from(text, "latin1"));
}
