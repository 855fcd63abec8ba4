import type { NoticeRule } from "../../../api/accounts/notices";

export const CHANNELS: Record<NoticeRule["channel"], string> = {
  webhook: "Webhook",
  slack: "Slack",
  email: "E-mail",
};
