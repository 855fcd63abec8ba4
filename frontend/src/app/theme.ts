import {
  Alert,
  Badge,
  createTheme,
  Modal,
  Notification,
  Table,
  type MantineColorsTuple,
} from "@mantine/core";

const helm: MantineColorsTuple = [
  "#e6f7fa",
  "#d3ebf0",
  "#a9d6e0",
  "#7bc0cf",
  "#56aec2",
  "#3fa3b9",
  "#2f96ae",
  "#20849a",
  "#0b7285",
  "#006071",
];

export const theme = createTheme({
  primaryColor: "helm",
  primaryShade: { light: 8, dark: 8 },
  colors: { helm },
  autoContrast: true,
  defaultRadius: "md",
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  headings: { fontWeight: "650" },
  components: {
    Alert: Alert.extend({ classNames: { title: "alert-title" } }),
    Badge: Badge.extend({ defaultProps: { radius: "sm", variant: "light", tt: "none" } as never }),
    Modal: Modal.extend({ defaultProps: { closeButtonProps: { "aria-label": "Close" } } }),
    Notification: Notification.extend({ defaultProps: { closeButtonProps: { "aria-label": "Close" } } }),
    Table: Table.extend({ defaultProps: { verticalSpacing: "xs", highlightOnHover: true } }),
  },
});
