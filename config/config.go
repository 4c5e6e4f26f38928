package config

// Config is a whole configuration file, with every default filled in. The
// tags say what is checked when a value is read: min and max of a number, the
// texts it may be (oneof), whether a duration or size may be 0 (zero). Rules
// between values stand in validate.go.
type Config struct {
	Listen         string   `toml:"listen"`                                // what senders reach: POST /in/<source>, GET /healthz
	PublicURL      string   `toml:"public_url"`                            // what they call it; schemes that sign the URL need it
	Database       string   `toml:"database"`                              // path of the SQLite file
	TrustedProxies []string `toml:"trusted_proxies"`                       // CIDRs whose X-Forwarded-For is believed, for logs and the drawer
	Grace          Duration `toml:"grace" zero:"ok"`                       // how long a stop waits for what is in flight
	MinFree        Size     `toml:"min_free" zero:"ok"`                    // free disk space under which intake answers 503
	MaxConnections int      `toml:"max_connections" min:"1" max:"1000000"` // connections of senders at once

	Admin        Admin                  `toml:"admin"`
	Log          Log                    `toml:"log"`
	Worker       Worker                 `toml:"worker"`
	SMTP         SMTP                   `toml:"smtp"`
	Alerts       Alerts                 `toml:"alerts"`
	Sources      []Source               `toml:"source"`
	Rules        []Rule                 `toml:"rule"`
	Destinations map[string]Destination `toml:"destination"`
	Retries      map[string]Retry       `toml:"retry"`
}

// Admin is the listener of the operator.
type Admin struct {
	Listen    string `toml:"listen"`
	PublicURL string `toml:"public_url"`
	Password  Secret `toml:"password"`
}

// Log says how log lines look.
type Log struct {
	Level  string `toml:"level" oneof:"debug,info,warn,error"` // debug, info, warn, error
	Format string `toml:"format" oneof:"auto,json,text"`       // auto (readable at a terminal, JSON elsewhere), json, text
}

// Worker bounds the application of rules.
type Worker struct {
	Retry   string   `toml:"retry"`                    // the retry policy of events
	Batch   int      `toml:"batch" min:"1" max:"1000"` // events claimed at once
	Timeout Duration `toml:"timeout"`                  // how long one event's rules may run
}

// SMTP is the mail server. Mail itself comes with the email effect.
type SMTP struct {
	Host     string `toml:"host"`
	From     string `toml:"from"`
	Username string `toml:"username"`
	Password Secret `toml:"password"`
}

// Alerts says who is told.
type Alerts struct {
	To []string `toml:"to"`
}

// Source is one sender's endpoint: POST /in/<name>.
type Source struct {
	Name            string            `toml:"name"`
	Provider        string            `toml:"provider"` // a preset; empty with a [source.verify] of its own
	Secrets         []Secret          `toml:"secrets"`
	AwaitSecret     bool              `toml:"await_secret"` // no secret yet: probes are answered, every POST gets 503
	AllowWeakSecret bool              `toml:"allow_weak_secret"`
	PublicURL       string            `toml:"public_url"`                 // the exact URL registered with the sender
	Forward         StringList        `toml:"forward"`                    // short for a rule that forwards all events
	Ignore          []string          `toml:"ignore"`                     // type globs: acknowledged, kept without body
	Mode            string            `toml:"mode" oneof:"any,live,test"` // any, live, test
	MaxBody         Size              `toml:"max_body"`
	DuplicateStatus int               `toml:"duplicate_status" oneof:"200,409"` // 200 or 409
	RejectStatus    int               `toml:"reject_status" min:"400" max:"499"`
	ProbeStatus     int               `toml:"probe_status" oneof:"200,405"` // answer to HEAD and GET: 200 or 405
	BodyWindow      *Duration         `toml:"body_window"`                  // second key by body hash; "0s" switches it off
	Accounts        map[string]string `toml:"accounts"`
	Index           []string          `toml:"index"`
	Settings        map[string]string `toml:"settings"` // what a scheme asks for: verify_token, api_key, …
	Verify          *Scheme           `toml:"verify"`   // own scheme, or overrides of the preset's
}

// Rule says what happens to an event.
type Rule struct {
	Name    string   `toml:"name"`
	Match   Match    `toml:"match"`
	When    string   `toml:"when"`
	Key     string   `toml:"key"`
	Forward *Forward `toml:"forward"`
	Go      string   `toml:"go"` // name of a handler that a custom binary registered
}

// Match selects events by source and type globs.
type Match struct {
	Source StringList `toml:"source"`
	Types  []string   `toml:"types"`
}

// Forward is the effect that delivers the event to HTTP destinations.
type Forward struct {
	To StringList `toml:"to"`
}

// Destination is where deliveries go.
type Destination struct {
	URL            string            `toml:"url"`
	Secret         Secret            `toml:"secret"`
	Timeout        Duration          `toml:"timeout"`
	ConnectTimeout Duration          `toml:"connect_timeout"`
	Retry          string            `toml:"retry"`
	Retry4xx       *bool             `toml:"retry_4xx"` // other 4xx are transient too; the policy's own setting when absent
	MaxInFlight    int               `toml:"max_in_flight" min:"1" max:"1000"`
	Rate           Rate              `toml:"rate"`
	OnDoubt        string            `toml:"on_doubt" oneof:"retry,review"` // retry or review
	PassHeaders    []string          `toml:"pass_headers"`
	Headers        map[string]Secret `toml:"headers"`
	MaxRetryAfter  Duration          `toml:"max_retry_after"` // the cap on Retry-After
}

// Retry is a retry policy of the owner's: a list of delays, or first, factor,
// max and attempts.
type Retry struct {
	Delays   []Duration `toml:"delays"`
	First    Duration   `toml:"first"`
	Factor   float64    `toml:"factor" min:"1" max:"100"`
	Max      Duration   `toml:"max"`
	Attempts int        `toml:"attempts" min:"1" max:"1000"`
	Retry4xx bool       `toml:"retry_4xx"`
}
