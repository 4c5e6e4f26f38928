package admin

// The kinds of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The names of all metrics of ours. What is counted is counted since the
// start.
const (
	MetricBuild          = "creel_build_info"
	MetricReady          = "creel_ready"
	MetricLoopIdle       = "creel_loop_idle_seconds"
	MetricReceipts       = "creel_receipts_total"
	MetricEvents         = "creel_events_total"
	MetricRejects        = "creel_rejects_total"
	MetricAnswers        = "creel_answers_total"
	MetricAcknowledgment = "creel_acknowledgement_duration_seconds"
	MetricLastReceipt    = "creel_last_receipt_timestamp_seconds"
	MetricBodies         = "creel_request_bodies_bytes"

	MetricProcessed    = "creel_events_processed_total"
	MetricProcessing   = "creel_processing_duration_seconds"
	MetricInbox        = "creel_inbox_events"
	MetricEventOverdue = "creel_event_overdue_seconds"

	MetricDeliveries      = "creel_deliveries_total"
	MetricAttempts        = "creel_delivery_attempts_total"
	MetricAttemptTime     = "creel_delivery_attempt_duration_seconds"
	MetricDeliveryLatency = "creel_delivery_latency_seconds"
	MetricOutbox          = "creel_outbox_deliveries"
	MetricDeliveryOverdue = "creel_delivery_overdue_seconds"
	MetricDestination     = "creel_destination_state"

	MetricSignal          = "creel_signal"
	MetricSignalValue     = "creel_signal_value"
	MetricSignalThreshold = "creel_signal_threshold"
	MetricIncidents       = "creel_open_incidents"
	MetricAlerts          = "creel_alerts_total"
	MetricGap             = "creel_reconciliation_missing_events"
	MetricGapAt           = "creel_reconciliation_timestamp_seconds"
	MetricCensus          = "creel_census_timestamp_seconds"

	MetricDatabase           = "creel_database_bytes"
	MetricWAL                = "creel_wal_bytes"
	MetricFree               = "creel_disk_free_bytes"
	MetricBatches            = "creel_writer_batches_total"
	MetricUnits              = "creel_writer_units_total"
	MetricReruns             = "creel_writer_reruns_total"
	MetricTroubles           = "creel_writer_troubles_total"
	MetricQueue              = "creel_writer_queue_units"
	MetricCommit             = "creel_writer_commit_duration_seconds"
	MetricCheckpoints        = "creel_checkpoints_total"
	MetricCheckpointDuration = "creel_checkpoint_duration_seconds"
)

// Families is the table of all metrics: what is not in it can not be written.
// Labels have values of the configuration or of fixed lists, never of
// requests.
func Families() []Family {
	return append([]Family{
		{MetricBuild, gauge, []string{"version", "go_version"}, "Which build runs; always 1."},
		{MetricReady, gauge, []string{"check"}, "Whether a condition of readiness holds: store, worker, dispatcher."},
		{MetricLoopIdle, gauge, []string{"loop"}, "Since when a loop has not come round; one that is well comes every half minute."},

		{MetricReceipts, counter, []string{"source"}, "Verified requests that were acknowledged, duplicates among them."},
		{MetricEvents, counter, []string{"source", "result"}, "Events of receipts: new, duplicate, or conflict (known with another body)."},
		{MetricRejects, counter, []string{"source", "cause"}, "Requests that were rejected, by cause: they failed verification, or their body is not taken."},
		{MetricAnswers, counter, []string{"source", "result", "class"}, "Answers to requests that neither are receipts nor failed verification, by result and status class."},
		{MetricAcknowledgment, histogram, []string{"source"}, "From the complete request to the written answer of a receipt: verification, commit and sync."},
		{MetricLastReceipt, gauge, []string{"source"}, "When the latest receipt was acknowledged; absent where none is known."},
		{MetricBodies, gauge, nil, "Request bodies that are held in memory."},

		{MetricProcessed, counter, []string{"result"}, "What the worker made of events: done, ignored, dead, or retry for a failed attempt that will be made again."},
		{MetricProcessing, histogram, nil, "From the receipt of an event to the commit of its rules' effects, retries included, replays not."},
		{MetricInbox, gauge, []string{"state"}, "Events that are pending, claimed or dead."},
		{MetricEventOverdue, gauge, nil, "How long the oldest pending event is past due; 0 where none is."},

		{MetricDeliveries, counter, []string{"destination", "result"}, "Deliveries whose turn is over: sent, dead or in_doubt."},
		{MetricAttempts, counter, []string{"destination", "attempt", "outcome"}, "Attempts by outcome; attempt is first or again, so that the share not sent at once shows."},
		{MetricAttemptTime, histogram, []string{"destination"}, "How long attempts took, whatever came of them."},
		{MetricDeliveryLatency, histogram, []string{"destination"}, "From the receipt of the event to the end of the attempt that was sent, replays excepted."},
		{MetricOutbox, gauge, []string{"destination", "state"}, "Deliveries that are ready, waiting (behind another), sending, in_doubt or dead."},
		{MetricDeliveryOverdue, gauge, []string{"destination"}, "How long the oldest ready delivery is past due; 0 where none is."},
		{MetricDestination, gauge, []string{"destination", "state"}, "1 for the state of the destination: enabled, held, disabled or paused."},

		{MetricSignal, gauge, []string{"signal", "subject"}, "1 while a signal fires; subject is a source, a destination, or empty for the server."},
		{MetricSignalValue, gauge, []string{"signal", "subject"}, "What a signal measures now, in the unit that docs/operations.md names."},
		{MetricSignalThreshold, gauge, []string{"signal", "subject"}, "Where a signal begins to fire; absent where it can not."},
		{MetricIncidents, gauge, []string{"cause"}, "Incidents that are open, by cause."},
		{MetricAlerts, counter, []string{"destination", "result"}, "Alerts whose turn is over: sent, dead or in_doubt."},
		{MetricGap, gauge, []string{"source"}, "Events that the provider listed and the inbox does not have, when it was last looked."},
		{MetricGapAt, gauge, []string{"source"}, "When a source was last compared with its provider's list."},
		{MetricCensus, gauge, nil, "When the gauges of states were last counted."},

		{MetricDatabase, gauge, nil, "Size of the database file."},
		{MetricWAL, gauge, nil, "Size of the write-ahead log."},
		{MetricFree, gauge, nil, "Free space on the disk of the database."},
		{MetricBatches, counter, nil, "Transactions of the writer."},
		{MetricUnits, counter, nil, "Pieces of writing; over the transactions it is how many share one sync."},
		{MetricReruns, counter, nil, "Batches that ran again because one of their units failed."},
		{MetricTroubles, counter, nil, "How often the store could not write."},
		{MetricQueue, gauge, []string{"priority"}, "Pieces of writing that wait: intake (senders wait for it) or work."},
		{MetricCommit, histogram, nil, "How long a transaction of the writer took, with its sync."},
		{MetricCheckpoints, counter, []string{"result"}, "Checkpoints of the WAL: complete, partial (a reader was in the way, which is normal) or failed."},
		{MetricCheckpointDuration, histogram, nil, "How long a checkpoint took."},
	}, processFamilies()...)
}
