import { Badge } from "@mantine/core";
import type { Delivery } from "../../../api/accounts/notices";

const LOOK = { pending: "indigo", delivered: "green", failed: "red" } as const;

export function DeliveryState({ delivery }: { delivery: Delivery }) {
  return (
    <Badge color={LOOK[delivery.state]} className="state-badge">
      {delivery.state}
      {delivery.last_status !== null && ` ${delivery.last_status}`}
    </Badge>
  );
}
