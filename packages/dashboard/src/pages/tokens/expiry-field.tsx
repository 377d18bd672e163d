import { useState } from "react";
import { Field } from "../../components/field.tsx";

const DAY_MS = 24 * 60 * 60 * 1000;

const CHOICES = [
  { value: "", title: "Never" },
  { value: "1", title: "In 1 day" },
  { value: "30", title: "In 30 days" },
  { value: "90", title: "In 90 days" },
  { value: "365", title: "In 1 year" },
];

/** Selects the expiry time of a token: ISO 8601, or null for none. */
export function ExpiryField({ onChange }: { readonly onChange: (at: string | null) => void }) {
  const [days, setDays] = useState("");
  return (
    <Field label="Expires">
      <select
        value={days}
        onChange={({ target }) => {
          setDays(target.value);
          onChange(
            target.value === "" ? null : new Date(Date.now() + Number(target.value) * DAY_MS).toISOString(),
          );
        }}
      >
        {CHOICES.map(({ value, title }) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </Field>
  );
}
