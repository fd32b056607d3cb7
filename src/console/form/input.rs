//! How a page presents the fields of a form, beyond the schema.

/// How a field is shown, if not as its schema says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// As the schema says.
    Plain,
    Line,
    Area,
    /// A text with several lines and a preview.
    Markdown,
    /// A text of a formal language.
    Code,
    /// Checkboxes.
    Several,
}

/// A field of a form, by the name of its property in the request body. A dot leads into a nested object,
/// and a number into an array: `tiles.0.color`.
#[derive(Debug, Clone, Copy)]
pub(in crate::console) struct Input {
    pub(super) name: &'static str,
    pub(super) label: Option<&'static str>,
    pub(super) hint: &'static str,
    pub(super) choices: &'static [(&'static str, &'static str)],
    pub(super) heading: Option<&'static str>,
    pub(super) shape: Shape,
    /// Whether the page requires a value where the API does not.
    pub(super) is_required: bool,
}

impl Input {
    /// Shows the property as its schema describes it.
    pub(in crate::console) const fn new(name: &'static str) -> Self {
        Self {
            name,
            label: None,
            hint: "",
            choices: &[],
            heading: None,
            shape: Shape::Plain,
            is_required: false,
        }
    }

    /// Sets the label. Otherwise it is the first sentence of the property's description.
    pub(in crate::console) const fn label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// Sets the text below the field. The description of the property never stands there: it speaks to clients of the API.
    pub(in crate::console) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Offers these values, each with its label. The form reads them by the schema.
    pub(in crate::console) const fn choices(
        mut self,
        choices: &'static [(&'static str, &'static str)],
    ) -> Self {
        self.choices = choices;
        self
    }

    /// Requires a value in a form that creates something, although the API does not.
    pub(in crate::console) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Begins a group with this heading.
    pub(in crate::console) const fn heading(mut self, heading: &'static str) -> Self {
        self.heading = Some(heading);
        self
    }

    /// Shows a text with several lines and, on demand, what its Markdown becomes.
    pub(in crate::console) const fn markdown(mut self) -> Self {
        self.shape = Shape::Markdown;
        self
    }

    /// Shows a list of objects as checkboxes. Its values are those that the page offers. Lists of texts and numbers need
    /// this only if nothing is offered.
    pub(in crate::console) const fn several(mut self) -> Self {
        self.shape = Shape::Several;
        self
    }

    /// Shows a text on one line, however long it may be.
    pub(in crate::console) const fn line(mut self) -> Self {
        self.shape = Shape::Line;
        self
    }

    /// Shows a text with several lines.
    pub(in crate::console) const fn area(mut self) -> Self {
        self.shape = Shape::Area;
        self
    }

    /// Shows a text of a formal language, with several lines.
    pub(in crate::console) const fn code(mut self) -> Self {
        self.shape = Shape::Code;
        self
    }
}
