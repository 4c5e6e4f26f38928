package event

// What an operator does about requests before they are events.
const (
	// ActionReadmit verifies a rejected request again and stores its events.
	ActionReadmit ActionKind = "accept rejected"
	// ActionPair opens the pairing mode of a source, ActionPaired ends it with
	// the secret that its sender handed over.
	ActionPair   ActionKind = "pair"
	ActionPaired ActionKind = "paired"
	// ActionImport takes events from a file, ActionReconcile those that the
	// sender lists and the inbox does not have.
	ActionImport    ActionKind = "import"
	ActionReconcile ActionKind = "reconcile"
)
