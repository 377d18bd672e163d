/**
 * What the charts of a page share: the time under the pointer, so that one crosshair goes through all of them, and the series that the legend
 * isolates. A chart outside of a group has both for itself.
 *
 * The state is outside of React's: a moving pointer renders the crosshairs anew, and nothing else of the page.
 */
import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from "react";

interface GroupState {
  readonly time: number | null;
  /** The name of the only series that is shown; null shows all. */
  readonly only: string | null;
}

interface Group {
  readonly get: () => GroupState;
  readonly set: (change: Partial<GroupState>) => void;
  readonly subscribe: (onChange: () => void) => () => void;
}

const GroupContext = createContext<Group | null>(null);

export function ChartGroup({ children }: { readonly children: ReactNode }) {
  const [group] = useState(createGroup);
  return <GroupContext value={group}>{children}</GroupContext>;
}

/** The group that the chart is in, or one of its own. */
export function useChartGroup(): Group {
  const shared = useContext(GroupContext);
  const [own] = useState(createGroup);
  return shared ?? own;
}

export function useGroupTime(group: Group): number | null {
  return useSyncExternalStore(group.subscribe, () => group.get().time);
}

export function useGroupOnly(group: Group): string | null {
  return useSyncExternalStore(group.subscribe, () => group.get().only);
}

function createGroup(): Group {
  let state: GroupState = { time: null, only: null };
  const listeners = new Set<() => void>();
  return {
    get: () => state,
    set(change) {
      const next = { ...state, ...change };
      if (next.time === state.time && next.only === state.only) return;
      state = next;
      for (const listener of listeners) listener();
    },
    subscribe(onChange) {
      listeners.add(onChange);
      return () => listeners.delete(onChange);
    },
  };
}
