// Conformance tools whose calls take several rounds, with state that the client returns unchanged. Test only.
import { randomBytes } from "node:crypto";
import { acceptedContent, createRequestStateCodec, inputRequired } from "@modelcontextprotocol/server";
import { z } from "zod";

const codec = createRequestStateCodec({ key: randomBytes(32) });

/** Server option: state that was tampered with never reaches a tool. */
export const requestState = { verify: codec.verify };

const text = (value) => ({ content: [{ type: "text", text: value }] });
const ask = (message, shape) => inputRequired.elicit({ message, requestedSchema: z.object(shape) });
const OK = { ok: z.boolean() };

export function registerStatefulTools(server) {
  const tool = (name, run) => server.registerTool(name, { description: `Conformance: ${name}`, inputSchema: z.object({}) }, run);

  for (const name of ["test_input_required_result_request_state", "test_input_required_result_tampered_state"])
    tool(name, async (_, { mcpReq }) => {
      const answer = acceptedContent(mcpReq.inputResponses, "confirm", z.object(OK));
      if (answer && mcpReq.requestState()?.tool === name) return text("state-ok");
      return inputRequired({ inputRequests: { confirm: ask("Please confirm", OK) }, requestState: await codec.mint({ tool: name }) });
    });

  tool("test_input_required_result_multiple_inputs", async (_, { mcpReq }) => {
    const { user_name, greeting, client_roots } = mcpReq.inputResponses ?? {};
    if (user_name && greeting && client_roots && mcpReq.requestState()) return text("All three arrived.");
    return inputRequired({
      inputRequests: {
        user_name: ask("What is your name?", { name: z.string() }),
        greeting: inputRequired.createMessage({
          messages: [{ role: "user", content: { type: "text", text: "Generate a greeting" } }],
          maxTokens: 50,
        }),
        client_roots: inputRequired.listRoots(),
      },
      requestState: await codec.mint({ asked: 3 }),
    });
  });

  tool("test_input_required_result_multi_round", async (_, { mcpReq }) => {
    const state = mcpReq.requestState();
    const first = acceptedContent(mcpReq.inputResponses, "step1", z.object({ name: z.string() }));
    const second = acceptedContent(mcpReq.inputResponses, "step2", z.object({ color: z.string() }));
    if (state?.step === 2 && second) return text(`${state.name} likes ${second.color}.`);
    if (state?.step === 1 && first)
      return inputRequired({
        inputRequests: { step2: ask("Step 2: What is your favorite color?", { color: z.string() }) },
        requestState: await codec.mint({ step: 2, name: first.name }),
      });
    return inputRequired({
      inputRequests: { step1: ask("Step 1: What is your name?", { name: z.string() }) },
      requestState: await codec.mint({ step: 1 }),
    });
  });
}
