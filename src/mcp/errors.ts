import { type CallToolResult, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { type CairnError, type ErrorCode, WIRE_NAME } from "../model/errors.ts";

interface McpError {
  /** The JSON-RPC code, where the protocol has no other place for an error: prompts and resources. */
  readonly rpcCode: number;
  /** What a model that reads the error should do, added to what happened. */
  readonly advice: string;
}

/** How each code appears to an MCP client. */
export const MCP_ERROR: Record<ErrorCode, McpError> = {
  invalid_input: { rpcCode: ProtocolErrorCode.InvalidParams, advice: "Correct the arguments and call again." },
  unauthorized: { rpcCode: ProtocolErrorCode.InvalidRequest, advice: "Do not retry without a valid key." },
  forbidden: { rpcCode: ProtocolErrorCode.InvalidRequest, advice: "Do not retry with this key." },
  not_found: { rpcCode: ProtocolErrorCode.InvalidParams, advice: "" },
  conflict: { rpcCode: ProtocolErrorCode.InvalidRequest, advice: "Read the current state, then decide again." },
  too_large: { rpcCode: ProtocolErrorCode.InvalidParams, advice: "Send less at once." },
  rate_limited: { rpcCode: ProtocolErrorCode.InternalError, advice: "Wait before calling again." },
  cancelled: { rpcCode: ProtocolErrorCode.InternalError, advice: "" },
  internal: { rpcCode: ProtocolErrorCode.InternalError, advice: "" },
  unavailable: { rpcCode: ProtocolErrorCode.InternalError, advice: "Try again later." },
  timeout: { rpcCode: ProtocolErrorCode.InternalError, advice: "" },
};

/** The key of `_meta` under which a failed result has the error for programs. */
const ERROR_META_KEY = "cairn/error";

/**
 * A failed call as a tool result, so that the model sees it and can act. The data for programs goes into `_meta`: older
 * clients hold `structuredContent` against the tool's output schema even when the call failed.
 */
export function toolError(error: CairnError): CallToolResult {
  return {
    isError: true,
    content: [{ type: "text", text: errorText(error) }],
    _meta: { [ERROR_META_KEY]: errorData(error) },
  };
}

/** The same for the parts of the protocol that know only JSON-RPC errors. */
export function protocolError(error: CairnError): ProtocolError {
  return new ProtocolError(MCP_ERROR[error.code].rpcCode, errorText(error), errorData(error));
}

function errorText(error: CairnError): string {
  const sentence = error.message.replace(/[^.!?]$/, "$&.");
  return `${WIRE_NAME[error.code]}: ${sentence} ${MCP_ERROR[error.code].advice}`.trimEnd();
}

function errorData(error: CairnError): Record<string, unknown> {
  return {
    code: WIRE_NAME[error.code],
    message: error.message,
    ...(error.details && { details: error.details }),
    ...(error.retryAfterMs !== undefined && { retry_after_ms: error.retryAfterMs }),
  };
}
