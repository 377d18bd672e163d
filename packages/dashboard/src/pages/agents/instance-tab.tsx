import type { ReactNode } from "react";
import type { Resource } from "../../http/use-resource.ts";
import type { InstanceDetail } from "./agent.ts";
import { ConnectionsTab } from "./tabs/connections-tab.tsx";
import { ConsoleTab } from "./tabs/console-tab.tsx";
import { DeadLettersTab } from "./tabs/dead-letters-tab.tsx";
import { QueueTab } from "./tabs/queue-tab.tsx";
import { SchedulesTab } from "./tabs/schedules-tab.tsx";
import { SqlTab } from "./tabs/sql-tab.tsx";
import { StateTab } from "./tabs/state-tab.tsx";
import { TimelineTab } from "./tabs/timeline-tab.tsx";

export type InstanceTabName =
  | "timeline"
  | "state"
  | "queue"
  | "dead-letters"
  | "schedules"
  | "connections"
  | "console"
  | "sql";

interface InstanceTabProps {
  readonly tab: InstanceTabName;
  readonly agent: string;
  readonly name: string;
  /** Path of the instance in the management API. */
  readonly path: string;
  readonly instance: Resource<InstanceDetail>;
}

export function InstanceTab({ tab, agent, name, path, instance }: InstanceTabProps): ReactNode {
  switch (tab) {
    case "timeline":
      return <TimelineTab path={`${path}/timeline`} eventsPath={`${path}/events`} />;
    case "state":
      return <StateTab instance={instance} eventsPath={`${path}/events`} />;
    case "queue":
      return <QueueTab path={`${path}/queue`} onChange={instance.reload} />;
    case "dead-letters":
      return <DeadLettersTab path={`${path}/dead-letters`} onChange={instance.reload} />;
    case "schedules":
      return <SchedulesTab path={`${path}/schedules`} onChange={instance.reload} />;
    case "connections":
      return <ConnectionsTab path={`${path}/connections`} />;
    case "console":
      return <ConsoleTab agent={agent} name={name} />;
    case "sql":
      return <SqlTab path={`${path}/sql`} />;
  }
}
