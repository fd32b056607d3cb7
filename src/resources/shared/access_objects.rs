//! The objects of a project that have access rules and public pages, and their kinds. See
//! `docs/spec/access-controls.md` and `docs/spec/sharing.md`.

use serde::{Deserialize, Serialize};

use crate::ids::{DashboardId, InsightId, ProjectId};
use crate::input::named_values;
use crate::store::{Key, Reference, Table};

named_values! {
    /// A kind of objects that has access rules. Rules are served for all kinds, but apply only to dashboards and
    /// insights.
    ///
    /// Keys contain the position in this list: kinds are only appended, never removed.
    #[allow(missing_docs, reason = "the names say what the kinds are")]
    #[derive(serde::Serialize)]
    pub enum Kind {
        Action = "action",
        ActivityLog = "activity_log",
        CustomerAnalytics = "customer_analytics",
        Dashboard = "dashboard",
        EarlyAccessFeature = "early_access_feature",
        Endpoint = "endpoint",
        ErrorTracking = "error_tracking",
        Experiment = "experiment",
        Export = "export",
        ExternalDataSource = "external_data_source",
        FeatureFlag = "feature_flag",
        Insight = "insight",
        LlmAnalytics = "llm_analytics",
        Logs = "logs",
        Notebook = "notebook",
        RevenueAnalytics = "revenue_analytics",
        SharingConfiguration = "sharing_configuration",
        SessionRecording = "session_recording",
        Survey = "survey",
        Tracing = "tracing",
        WarehouseObjects = "warehouse_objects",
        WebAnalytics = "web_analytics",
    }
}

impl Kind {
    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Key for Kind {
    fn write(&self, out: &mut Vec<u8>) {
        (*self as u8).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(u8::read(input)?)).copied()
    }
}

/// One object to which access rules apply, and that can have a public page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// A dashboard.
    Dashboard(DashboardId),
    /// An insight.
    Insight(InsightId),
}

impl Object {
    /// Returns the object with this number; `None` if no object of the kind exists.
    pub const fn of(kind: Kind, number: u64) -> Option<Self> {
        match kind {
            Kind::Dashboard => Some(Self::Dashboard(DashboardId(number))),
            Kind::Insight => Some(Self::Insight(InsightId(number))),
            _ => None,
        }
    }

    /// Returns the kind of the object.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Dashboard(_) => Kind::Dashboard,
            Self::Insight(_) => Kind::Insight,
        }
    }

    /// Returns the number of the object, which is unique among its kind.
    pub const fn number(self) -> u64 {
        match self {
            Self::Dashboard(id) => id.0,
            Self::Insight(id) => id.0,
        }
    }

    /// Returns the reference to the record of the object.
    pub fn reference(self, project: ProjectId) -> Reference {
        let table = match self {
            Self::Dashboard(_) => Table::Dashboards,
            Self::Insight(_) => Table::Insights,
        };
        Reference { table, key: (project, self.number()).encoded() }
    }
}

impl Key for Object {
    fn write(&self, out: &mut Vec<u8>) {
        (self.kind(), self.number()).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let kind = Kind::read(input)?;
        Self::of(kind, u64::read(input)?)
    }
}
