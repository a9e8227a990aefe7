// The tools that the MCP conformance suite calls, as its scenarios describe them. Test only.
import { setTimeout as sleep } from "node:timers/promises";
import { acceptedContent, inputRequired, inputResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import { AUDIO, IMAGE } from "./media.mjs";

const text = (value) => ({ content: [{ type: "text", text: value }] });

export function registerTools(server, notify) {
  const tool = (name, run, inputSchema = z.object({})) =>
    server.registerTool(name, { description: `Conformance: ${name}`, inputSchema }, run);

  tool("test_simple_text", () => text("This is a simple text response for testing."));
  tool("test_image_content", () => ({ content: [{ type: "image", ...IMAGE }] }));
  tool("test_audio_content", () => ({ content: [{ type: "audio", ...AUDIO }] }));
  tool("test_embedded_resource", () => ({
    content: [
      {
        type: "resource",
        resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." },
      },
    ],
  }));
  tool("test_multiple_content_types", () => ({
    content: [
      { type: "text", text: "Multiple content types test:" },
      { type: "image", ...IMAGE },
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: JSON.stringify({ test: "data", value: 123 }),
        },
      },
    ],
  }));
  tool("test_error_handling", () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool("test_tool_with_logging", async (_, { mcpReq }) => {
    for (const message of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log("info", message);
      await sleep(50);
    }
    return text("Logged three messages.");
  });
  tool("test_logging_tool", async (_, { mcpReq }) => {
    await mcpReq.log("info", "Only for clients that set a log level");
    return text("Logged one message.");
  });
  tool("test_tool_with_progress", async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return text("Done.");
  });
  tool("test_trigger_tool_change", () => {
    notify().toolsChanged();
    return text("Notified the listeners.");
  });
  tool("test_trigger_prompt_change", () => {
    notify().promptsChanged();
    return text("Notified the listeners.");
  });

  registerAskingTools(tool);
}

/** Registers tools that need input of the client: by a server request in the 2025 protocol, by an `input_required` result in 2026. */
function registerAskingTools(tool) {
  tool(
    "test_sampling",
    async ({ prompt }, { mcpReq }) => {
      const result = await mcpReq.requestSampling({
        messages: [{ role: "user", content: { type: "text", text: prompt } }],
        maxTokens: 100,
      });
      return text(`LLM response: ${result.content.text}`);
    },
    z.object({ prompt: z.string() }),
  );
  tool(
    "test_elicitation",
    async ({ message }, { mcpReq }) => {
      const { action, content } = await mcpReq.elicitInput({
        message,
        requestedSchema: {
          type: "object",
          properties: {
            username: { type: "string", description: "User's response" },
            email: { type: "string", description: "User's email address" },
          },
          required: ["username", "email"],
        },
      });
      return text(`User response: action: ${action}, content: ${JSON.stringify(content)}`);
    },
    z.object({ message: z.string() }),
  );

  const elicited =
    (message, properties) =>
    async (_, { mcpReq }) => {
      const { action, content } = await mcpReq.elicitInput({ message, requestedSchema: { type: "object", properties, required: [] } });
      return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);
    };
  tool(
    "test_elicitation_sep1034_defaults",
    elicited("Please review these values", {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    }),
  );
  const titled = (noun) => ["First", "Second", "Third"].map((rank, index) => ({ const: `value${index + 1}`, title: `${rank} ${noun}` }));
  const options = ["option1", "option2", "option3"];
  tool(
    "test_elicitation_sep1330_enums",
    elicited("Please choose", {
      untitledSingle: { type: "string", enum: options },
      titledSingle: { type: "string", oneOf: titled("Option") },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: options } },
      titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
    }),
  );

  const ask = (message, shape) => inputRequired.elicit({ message, requestedSchema: z.object(shape) });
  const sample = (question, maxTokens) =>
    inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: question } }], maxTokens });
  const NAME = { name: z.string() };

  tool("test_missing_capability", () => inputRequired({ inputRequests: { sampled: sample("Anything", 10) } }));
  tool("test_streaming_elicitation", () => inputRequired({ inputRequests: { user_name: ask("What is your name?", NAME) } }));
  tool("test_input_required_result_elicitation", (_, { mcpReq }) => {
    const answer = acceptedContent(mcpReq.inputResponses, "user_name", z.object(NAME));
    return answer ? text(`Hello, ${answer.name}!`) : inputRequired({ inputRequests: { user_name: ask("What is your name?", NAME) } });
  });
  tool("test_input_required_result_sampling", (_, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "capital_question");
    if (answer.kind === "sampling") return text(answer.result.content.text);
    return inputRequired({ inputRequests: { capital_question: sample("What is the capital of France?", 100) } });
  });
  tool("test_input_required_result_list_roots", (_, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "client_roots");
    if (answer.kind === "roots") return text(answer.roots.map(({ uri }) => uri).join(", "));
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
  tool("test_input_required_result_capabilities", (_, { mcpReq }) => {
    const declared = mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
    if (mcpReq.inputResponses) return text("Thank you.");
    return inputRequired({
      inputRequests: {
        ...(declared.sampling && { sampled: sample("Say hello", 20) }),
        ...(declared.elicitation && { asked: ask("What is your name?", NAME) }),
      },
      requestState: "asked",
    });
  });
}
