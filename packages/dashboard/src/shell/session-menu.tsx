import { Button } from "../components/button.tsx";
import { Field } from "../components/field.tsx";
import { useAction } from "../http/use-action.ts";
import { navigate } from "../routing/location.ts";
import { logOut, useScope } from "../session/session.ts";
import { saveTheme, type Theme, useTheme } from "../theme.ts";

export function SessionMenu({ onLogout }: { readonly onLogout: () => void }) {
  const { session, accountId } = useScope();
  const theme = useTheme();
  const logout = useAction(async () => {
    await logOut();
    onLogout();
  });
  return (
    <div className="session-menu">
      <Field label="Account">
        <select
          value={accountId}
          onChange={(event) => navigate(`/accounts/${encodeURIComponent(event.target.value)}`)}
        >
          {session.accounts.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          {!session.accounts.some(({ id }) => id === accountId) && (
            <option value={accountId}>{accountId}</option>
          )}
        </select>
      </Field>
      <Field label="Theme">
        <select value={theme} onChange={(event) => saveTheme(event.target.value as Theme)}>
          <option value="system">System</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </Field>
      <p className="muted small session-token">
        {session.is_root ? "Root token" : `Token “${session.token_name ?? ""}”`} · v{session.version}
      </p>
      <Button kind="quiet" onClick={() => void logout.run()} isBusy={logout.isBusy}>
        Log out
      </Button>
    </div>
  );
}
