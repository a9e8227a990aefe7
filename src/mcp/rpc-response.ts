/** A JSON-RPC error as an HTTP response, for requests refused before a server saw them. */
export function rpcErrorResponse(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
}
