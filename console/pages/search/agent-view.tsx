import { useEffect, useState } from "preact/hooks";
import { askAsAgent } from "../../api/ask-as-agent.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { formatPlural } from "../../parts/format.ts";
import { project } from "../../state/route.ts";
import { searchMode } from "./search-input.ts";

const TOOLS: Readonly<Record<string, string>> = { checkpoints: "checkpoint_search", knowledge: "knowledge_search", code: "code_search" };

/** Shows exactly what an agent would receive for the same question, with its size in tokens. */
export function AgentView({ query, scope }: { readonly query: string; readonly scope: string }) {
  const [answer, setAnswer] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const selected = project.value;
  const { mode } = searchMode();
  const needsProject = selected === undefined && scope !== "knowledge";
  useEffect(() => {
    if (needsProject) return setAnswer(undefined);
    const controller = new AbortController();
    const place = selected === undefined ? { scope: "shared" } : { project_path: selected };
    askAsAgent(TOOLS[scope]!, { ...place, query, ...(mode && { mode }) }, controller.signal).then(
      ({ text }) => {
        setAnswer(text);
        setProblem(undefined);
      },
      (error: Error) => controller.signal.aborted || setProblem(error.message),
    );
    return () => controller.abort();
  }, [query, scope, selected, mode, needsProject]);
  return (
    <section class="agent" aria-label="What an agent receives">
      <header>
        <h2>What an agent receives</h2>
        {answer !== undefined && (
          <>
            <span class="soft">about {formatPlural(roughTokens(answer), "token")}</span>
            <CopyButton text={() => answer} label="Copy what an agent receives" />
          </>
        )}
      </header>
      {needsProject && <p class="soft">An agent asks within one project. Choose one on the left.</p>}
      {problem !== undefined && <p class="soft">{problem}</p>}
      {answer !== undefined && (
        <pre tabIndex={0} dir="auto">
          {answer}
        </pre>
      )}
    </section>
  );
}

/** Characters per token of an indented answer with ids and times. */
const TOKEN_CHARS = 3.3;

/** Estimates tokens by the length of a text. The server counts more exactly, with a table that is too large for the page. */
function roughTokens(text: string): number {
  return Math.ceil(text.length / TOKEN_CHARS);
}
