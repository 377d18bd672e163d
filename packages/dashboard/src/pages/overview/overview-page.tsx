import { CodeBlock } from "../../components/code-block.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { CardMetric, type CardName } from "./card-metric.tsx";

interface FirstCommand {
  readonly card: CardName;
  readonly title: string;
  readonly command: string;
}

const CARDS = [
  {
    card: "gateway",
    title: "Gateways",
    page: "gateways",
    lead: "Route calls to AI providers through a gateway with authentication, rate limits, a cache and logs.",
    next: { page: "gateways", title: "Require a token on a gateway" },
  },
  {
    card: "agents",
    title: "Agents and webhooks",
    page: "agents",
    lead: "Verify webhook events and route each to its own agent instance: one per repository, customer or device.",
    next: { page: "webhooks", title: "Set up a webhook source" },
  },
  {
    card: "tags",
    title: "Tags",
    page: "tags",
    lead: "Add tags to gateways, agents, tokens and your own resources, and find resources by tag.",
    next: { page: "tags", title: "Find resources by tag" },
  },
] as const;

export function OverviewPage() {
  const { page } = useAccountPaths();
  const commands = useResource("first-commands", (signal) =>
    read<FirstCommand[]>("/dashboard/first-commands", signal),
  );
  return (
    <>
      <PageHeader title="Overview">
        To get started, run the commands below on the machine where the service runs.
      </PageHeader>
      <ResourceView of={commands}>
        {(all) => (
          <div className="cards">
            {CARDS.map((card) => (
              <section key={card.card} className="card" aria-labelledby={`card-${card.card}`}>
                <h2 id={`card-${card.card}`}>
                  <Link to={page(card.page)}>{card.title}</Link>
                </h2>
                <CardMetric card={card.card} />
                <p className="muted">{card.lead}</p>
                {all
                  .filter((command) => command.card === card.card)
                  .map(({ title, command }) => (
                    <div key={title}>
                      <p className="command-title">{title}</p>
                      <CodeBlock code={command} label={title} isWrapped />
                    </div>
                  ))}
                <p className="card-next">
                  <Link to={page(card.next.page)}>{card.next.title}</Link>
                </p>
              </section>
            ))}
          </div>
        )}
      </ResourceView>
    </>
  );
}
