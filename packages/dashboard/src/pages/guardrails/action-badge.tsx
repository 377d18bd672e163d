import type { GuardrailAction } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { ACTION_TITLES, ACTION_TONES } from "./rule-words.ts";

export function ActionBadge({ action }: { readonly action: GuardrailAction }) {
  return <Badge tone={ACTION_TONES[action]}>{ACTION_TITLES[action]}</Badge>;
}
