import type { ReactNode } from "react";
import { ConnectionsTab } from "./tabs/connections-tab.tsx";
import { ConsoleTab } from "./tabs/console-tab.tsx";
import { DeadLettersTab } from "./tabs/dead-letters-tab.tsx";
import { EventsTab } from "./tabs/events-tab.tsx";
import { QueueTab } from "./tabs/queue-tab.tsx";
import { SchedulesTab } from "./tabs/schedules-tab.tsx";
import { SqlTab } from "./tabs/sql-tab.tsx";
import { StateTab } from "./tabs/state-tab.tsx";

export type InstanceTabName =
  | "state"
  | "events"
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
  /** Called after a tab has changed the instance. */
  readonly onChange: () => void;
}

export function InstanceTab({ tab, agent, name, path, onChange }: InstanceTabProps): ReactNode {
  switch (tab) {
    case "state":
      return <StateTab agent={agent} name={name} />;
    case "events":
      return <EventsTab path={`${path}/events`} />;
    case "queue":
      return <QueueTab path={`${path}/queue`} />;
    case "dead-letters":
      return <DeadLettersTab path={`${path}/dead-letters`} onChange={onChange} />;
    case "schedules":
      return <SchedulesTab path={`${path}/schedules`} />;
    case "connections":
      return <ConnectionsTab path={`${path}/connections`} />;
    case "console":
      return <ConsoleTab agent={agent} name={name} />;
    case "sql":
      return <SqlTab path={`${path}/sql`} />;
  }
}
