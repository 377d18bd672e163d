interface SwitchProps {
  readonly isOn: boolean;
  /** ID of the label element. */
  readonly labelledBy: string;
  readonly onChange: (isOn: boolean) => void;
  readonly isDisabled?: boolean;
}

export function Switch({ isOn, labelledBy, onChange, isDisabled = false }: SwitchProps) {
  return (
    <button
      type="button"
      role="switch"
      className="switch"
      aria-checked={isOn}
      aria-labelledby={labelledBy}
      disabled={isDisabled}
      onClick={() => onChange(!isOn)}
    />
  );
}
