/** The first commands to run, shown while the account is new. Each step is marked when the service has seen it. */
import { Badge } from "../../components/badge.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { FirstCall } from "./first-call.tsx";
import type { Access } from "./use-access.ts";

type Area = "gateway" | "webhooks" | "agents" | "tags";

interface FirstCommand {
  readonly card: Area;
  readonly title: string;
  readonly command: string;
}

const NEXT: Readonly<Record<Area, { readonly page: readonly string[]; readonly title: string }>> = {
  gateway: { page: ["gateways"], title: "Require a token on a gateway" },
  webhooks: { page: ["webhooks"], title: "Set up a webhook source" },
  agents: { page: ["agents"], title: "See the instances of agents" },
  tags: { page: ["tags"], title: "Find resources by tag" },
};

interface FirstStepsProps {
  readonly access: Access;
  readonly done: Readonly<Partial<Record<Area, boolean>>>;
  /** Called when a step was taken here. */
  readonly onChange: () => void;
}

export function FirstSteps({ access, done, onChange }: FirstStepsProps) {
  const { page } = useAccountPaths();
  const commands = useResource("first-commands", (signal) =>
    read<FirstCommand[]>("/dashboard/first-commands", signal),
  );
  if (commands.error === null && commands.value === undefined) return null;
  const steps = stepsOf(commands.value ?? [], access);
  // A token may have none of the permissions that the steps take.
  if (commands.error === null && steps.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="steps-title">
      <h2 id="steps-title">First steps</h2>
      <p className="muted">
        Run these commands in the folder of the service, in this order. The page shows what they did.
      </p>
      <ResourceView of={commands}>
        {() => (
          <ol className="steps">
            {steps.map(({ card, title, command }) => (
              <li key={title}>
                <h3>
                  {title} {done[card] === true && <Badge tone="good">done</Badge>}
                </h3>
                <CodeBlock code={command} label={title} isWrapped />
                {card === "gateway" && <FirstCall onSent={onChange} />}
                <p className="small">
                  <Link to={page(...NEXT[card].page)}>{NEXT[card].title}</Link>
                </p>
              </li>
            ))}
          </ol>
        )}
      </ResourceView>
    </section>
  );
}

/** Steps that the session may take. Without a command that sends an event, there is no event to ask for. */
function stepsOf(all: readonly FirstCommand[], access: Access): FirstCommand[] {
  const canSend = access.webhooks && all.some(({ card }) => card === "webhooks");
  const mayTake: Readonly<Record<Area, boolean>> = {
    gateway: access.usage,
    webhooks: canSend,
    agents: access.agents && canSend,
    tags: access.tags,
  };
  return all.filter(({ card }) => mayTake[card]);
}
