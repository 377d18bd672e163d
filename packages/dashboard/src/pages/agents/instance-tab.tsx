import type { ReactNode } from "react";
import type { InstanceTabName } from "./instance-page.tsx";
import { ConnectionsTab } from "./tabs/connections-tab.tsx";
import { ConsoleTab } from "./tabs/console-tab.tsx";
import { DeadLettersTab } from "./tabs/dead-letters-tab.tsx";
import { EventsTab } from "./tabs/events-tab.tsx";
import { QueueTab } from "./tabs/queue-tab.tsx";
import { SchedulesTab } from "./tabs/schedules-tab.tsx";
import { SqlTab } from "./tabs/sql-tab.tsx";
import { StateTab } from "./tabs/state-tab.tsx";

interface InstanceTabProps {
  readonly tab: InstanceTabName;
  readonly agent: string;
  readonly name: string;
  /** Of the instance in the management interface. */
  readonly path: string;
  /** Something about the instance was changed. */
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
