// The prompts and resources that the MCP conformance suite reads, as its scenarios describe them. Test only.
import { acceptedContent, completable, inputRequired, ResourceTemplate } from "@modelcontextprotocol/server";
import { z } from "zod";
import { IMAGE } from "./media.mjs";

const user = (content) => ({ role: "user", content });
const said = (text) => user({ type: "text", text });

export function registerPrompts(server) {
  const prompt = (name, run, argsSchema) =>
    server.registerPrompt(name, { description: `Conformance: ${name}`, ...(argsSchema && { argsSchema }) }, run);

  prompt("test_simple_prompt", () => ({ messages: [said("This is a simple prompt for testing.")] }));
  prompt(
    "test_prompt_with_arguments",
    ({ arg1, arg2 }) => ({ messages: [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
    z.object({
      arg1: completable(z.string(), (start) => ["paris", "park", "party"].filter((word) => word.startsWith(start))),
      arg2: z.string(),
    }),
  );
  prompt(
    "test_prompt_with_embedded_resource",
    ({ resourceUri }) => ({
      messages: [
        user({ type: "resource", resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." } }),
        said("Please process the embedded resource above."),
      ],
    }),
    z.object({ resourceUri: z.string() }),
  );
  prompt("test_prompt_with_image", () => ({ messages: [user({ type: "image", ...IMAGE }), said("Please analyze the image above.")] }));
  prompt("test_input_required_result_prompt", ({ mcpReq }) => {
    const schema = z.object({ context: z.string() });
    const answer = acceptedContent(mcpReq.inputResponses, "user_context", schema);
    if (answer) return { messages: [said(`Use this context: ${answer.context}`)] };
    return inputRequired({
      inputRequests: { user_context: inputRequired.elicit({ message: "What context should the prompt use?", requestedSchema: schema }) },
    });
  });
}

export function registerResources(server, era) {
  const contents = (uri, mimeType, content) => ({ contents: [{ uri: String(uri), mimeType, ...content }] });
  server.registerResource("static text", "test://static-text", { mimeType: "text/plain" }, (uri) =>
    contents(uri, "text/plain", { text: "This is the content of the static text resource." }),
  );
  server.registerResource("static binary", "test://static-binary", { mimeType: "image/png" }, (uri) =>
    contents(uri, "image/png", { blob: IMAGE.data }),
  );
  server.registerResource("watched", "test://watched-resource", { mimeType: "text/plain" }, (uri) =>
    contents(uri, "text/plain", { text: "Watched." }),
  );
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { mimeType: "application/json" },
    (uri, { id }) => contents(uri, "application/json", { text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }),
  );
  if (era === "modern") return; // its transport serves subscriptions as one stream
  const watched = new Set();
  server.server.setRequestHandler("resources/subscribe", ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  server.server.setRequestHandler("resources/unsubscribe", ({ params }) => {
    watched.delete(params.uri);
    return {};
  });
}
