package config

// Config is a whole configuration file, with every default filled in. The
// tags say what is checked when a value is read: min and max of a number, the
// texts it may be (oneof), whether a duration or size may be 0 (zero). Rules
// between values stand in validate.go.
type Config struct {
	Listen         string   `toml:"listen"`                                // what senders reach: POST /in/<source>, GET /healthz
	PublicURL      string   `toml:"public_url"`                            // what they call it; schemes that sign the URL need it
	Database       string   `toml:"database"`                              // path of the SQLite file
	TrustedProxies []string `toml:"trusted_proxies"`                       // CIDRs whose X-Forwarded-For is believed, for logs, the drawer and guesses
	Grace          Duration `toml:"grace" zero:"ok"`                       // how long a stop waits for what is in flight
	Retention      Duration `toml:"retention" zero:"ok"`                   // how long what events carried is kept; 0s is for ever
	MinFree        Size     `toml:"min_free" zero:"ok"`                    // free disk space under which intake answers 503
	MaxConnections int      `toml:"max_connections" min:"1" max:"1000000"` // connections of senders at once

	Admin        Admin                  `toml:"admin"`
	Log          Log                    `toml:"log"`
	Worker       Worker                 `toml:"worker"`
	SMTP         SMTP                   `toml:"smtp"`
	Alerts       Alerts                 `toml:"alerts"`
	Signals      Signals                `toml:"signals"`
	Sources      []Source               `toml:"source"`
	Rules        []Rule                 `toml:"rule"`
	Destinations map[string]Destination `toml:"destination"`
	Retries      map[string]Retry       `toml:"retry"`
	SQL          OwnSQL                 `toml:"sql"`
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
	Timeout Duration `toml:"timeout"`                  // how long one event's rules may run, a fetch included
	Slow    int      `toml:"slow" min:"1" max:"1000"`  // events at once whose rules wait for something outside: a fetch or a Go handler
}

// SMTP is the mail server.
type SMTP struct {
	Host        string   `toml:"host"` // host:port
	From        string   `toml:"from"`
	Username    string   `toml:"username"`
	Password    Secret   `toml:"password"`
	TLS         string   `toml:"tls" oneof:"auto,starttls,implicit,none"`
	Hello       string   `toml:"hello"`   // the name given to the server; this machine's when empty
	Timeout     Duration `toml:"timeout"` // of one mail as a whole
	Retry       string   `toml:"retry"`
	MaxInFlight int      `toml:"max_in_flight" min:"1" max:"1000"`
	Rate        Rate     `toml:"rate"`
	OnDoubt     string   `toml:"on_doubt" oneof:"retry,review"` // retry repeats a mail whose answer was lost once
	GiveUpAfter Duration `toml:"give_up_after"`                 // what waited longer is a dead letter; 0 waits for ever
}

// Alerts says who is told.
type Alerts struct {
	To             []string `toml:"to"`             // mail addresses and "destination:NAME"
	Wait           Duration `toml:"wait" zero:"ok"` // how long trouble may grow, or pass, before it is told
	Heartbeat      string   `toml:"heartbeat"`      // a URL that is called while trouble would be noticed
	HeartbeatEvery Duration `toml:"heartbeat_every"`
}

// Source is one sender's endpoint: POST /in/<name>.
type Source struct {
	Name            string            `toml:"name"`
	Provider        string            `toml:"provider"` // a preset; empty with a [source.verify] of its own
	Secrets         []Secret          `toml:"secrets"`
	AwaitSecret     bool              `toml:"await_secret"` // no secret yet, or its file is not there yet: probes are answered, every POST gets 503
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
	Redact          []string          `toml:"redact"`                       // places whose values are not shown
	RedactStored    []string          `toml:"redact_stored"`                // places whose values are not kept either
	Retention       *Duration         `toml:"retention" zero:"ok"`          // of this source; the frame's where it is absent
	Process         string            `toml:"process" oneof:"queue,inline"` // inline: rules are applied in the transaction that stores the event
	Settings        map[string]string `toml:"settings"`                     // what a scheme asks for: verify_token, api_key, …
	Signals         SourceSignals     `toml:"signals"`                      // thresholds of its own
	Verify          *Scheme           `toml:"verify"`                       // own scheme, or overrides of the preset's
	Reconcile       *Reconcile        `toml:"reconcile"`                    // how missed events are found; overrides of the preset's
}

// Destination is where deliveries go: a URL, a command or a folder.
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
	Headers        map[string]Secret `toml:"headers"`         // a literal value is a template
	MaxRetryAfter  Duration          `toml:"max_retry_after"` // the cap on Retry-After
	Success        []int             `toml:"success"`         // statuses that count as sent, instead of 2xx and 409
	GiveUpAfter    Duration          `toml:"give_up_after"`   // what waited longer is a dead letter; 0 waits for ever

	Method     string            `toml:"method" oneof:"POST,PUT,PATCH,GET"`
	Body       *RequestBody      `toml:"body"`         // a body of the owner's; the event's where it is absent
	Settings   map[string]Secret `toml:"settings"`     // {setting.NAME} in url, headers and body
	MaxBody    Size              `toml:"max_body"`     // a larger body stays here and an envelope is sent; 0 sends any
	BodyURLTTL Duration          `toml:"body_url_ttl"` // how long the URL in an envelope is good; 0 is that of the retry policy

	Command       []string          `toml:"command"`                    // program and arguments; no shell reads them
	Payload       string            `toml:"payload" oneof:"stdin,file"` // how a command gets the body
	WorkingFolder string            `toml:"working_folder"`             // where a command runs
	Env           map[string]Secret `toml:"env"`                        // what a command finds in its environment beside ours

	Folder string `toml:"folder"`                      // where files are written
	Mode   string `toml:"mode" oneof:"0600,0640,0644"` // of the files
}

// RequestBody is the body that a destination wants instead of the event's: one
// of json, text and form. Every text in it is a template.
type RequestBody struct {
	Type string            `toml:"type"` // Content-Type
	JSON any               `toml:"json"` // tables, lists, texts, numbers and truths, as TOML has them
	Text string            `toml:"text"`
	Form map[string]string `toml:"form"`
}

// DestinationKind is what a destination is.
type DestinationKind string

// The kinds of destinations. Each has an effect that makes deliveries to it.
const (
	ToURL     DestinationKind = "url"     // forward
	ToCommand DestinationKind = "command" // run
	ToFolder  DestinationKind = "folder"  // file
)

// Kind is what the destination is; one that says nothing is meant to be a URL.
func (d *Destination) Kind() DestinationKind {
	switch {
	case d.URL == "" && d.Command != nil:
		return ToCommand
	case d.URL == "" && d.Folder != "":
		return ToFolder
	}
	return ToURL
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
